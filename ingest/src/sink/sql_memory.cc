// SPDX-License-Identifier: Apache-2.0
// The memory that SQLite takes, counted without a lock.
#include "sink/sql_memory.h"

#include <malloc.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdlib>

namespace wbscope {
namespace {

std::atomic<std::int64_t> used = 0;
std::atomic<std::int64_t> most = 0;

std::int64_t size_of(void* memory) noexcept {
  return static_cast<std::int64_t>(::malloc_usable_size(memory));
}

bool has_room(std::int64_t bytes) noexcept {
  const std::int64_t limit = most.load(std::memory_order_relaxed);
  return limit == 0 || used.load(std::memory_order_relaxed) + bytes <= limit;
}

void* take(int bytes) noexcept {
  if (!has_room(bytes)) return nullptr;
  void* const memory = std::malloc(static_cast<std::size_t>(bytes));
  if (memory != nullptr) used.fetch_add(size_of(memory), std::memory_order_relaxed);
  return memory;
}

void give_back(void* memory) noexcept {
  used.fetch_sub(size_of(memory), std::memory_order_relaxed);
  std::free(memory);
}

void* resize(void* memory, int bytes) noexcept {
  const std::int64_t before = size_of(memory);
  if (bytes > before && !has_room(bytes - before)) return nullptr;
  void* const moved = std::realloc(memory, static_cast<std::size_t>(bytes));
  if (moved != nullptr) used.fetch_add(size_of(moved) - before, std::memory_order_relaxed);
  return moved;
}

int size(void* memory) noexcept { return static_cast<int>(size_of(memory)); }
int round_up(int bytes) noexcept { return (bytes + 7) & ~7; }
int begin(void*) noexcept { return SQLITE_OK; }
void end(void*) noexcept {}

}  // namespace

void count_sql_memory() noexcept {
  static const bool is_done = [] {
    const sqlite3_mem_methods methods{take, give_back, resize, size, round_up, begin, end, nullptr};
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK;
  }();
  static_cast<void>(is_done);
}

void limit_sql_memory(std::int64_t bytes) noexcept {
  most.store(bytes, std::memory_order_relaxed);
}

}  // namespace wbscope
