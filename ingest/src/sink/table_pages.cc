// SPDX-License-Identifier: Apache-2.0
// The B-tree of one table, made of rows in order.
#include "sink/table_pages.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/error.h"

namespace wbscope {
namespace {

constexpr std::size_t kLeafHeader = 8;
constexpr std::size_t kInteriorHeader = 12;
constexpr std::size_t kPointer = 2;
constexpr std::size_t kNumber = 4;  // of a page
constexpr std::size_t kMostKept = 1u << 20;  // bytes, for the next row
constexpr std::byte kLeafOfTable{0x0d};
constexpr std::byte kInteriorOfTable{0x05};

void put_u16(std::byte* at, std::size_t value) noexcept {
  at[0] = static_cast<std::byte>(value >> 8 & 0xff);
  at[1] = static_cast<std::byte>(value & 0xff);
}

void put_u32(std::byte* at, std::uint32_t value) noexcept {
  put_u16(at, value >> 16);
  put_u16(at + 2, value & 0xffff);
}

// Of a page of either kind, whose cells begin at content.
void put_page_header(std::byte* page, std::byte kind, std::size_t cells,
                     std::size_t content) noexcept {
  page[0] = kind;
  put_u16(page + 1, 0);  // no free blocks
  put_u16(page + 3, cells);
  put_u16(page + 5, content & 0xffff);  // 65536 is stored as 0
  page[7] = std::byte{0};               // no fragments
}

}  // namespace

void RecordEncoder::throw_too_large() {
  throw Error(Exit::kEnvironment, {.slug = "cannot-write-database",
                                   .object = "a row",
                                   .text = "string or blob too big",
                                   .at = {},
                                   .have = "more than 1000000000 bytes",
                                   .effect = "nothing was written",
                                   .fix = "leave its event out: --events"});
}

TablePages::TablePages(const PageSize& size) : size_(size) {}

void TablePages::add(std::int64_t row, const RecordEncoder& record, MadePages& made) {
  assert(row > last_row_ || (offsets_.empty() && children_.empty()));
  const std::size_t bytes = record.size();
  const std::size_t most = size_.usable - 35;  // X, M and K of the format's description
  std::size_t local = bytes;
  if (bytes > most) [[unlikely]] {
    const std::size_t least = (size_.usable - 12) * 32 / 255 - 23;
    local = least + (bytes - least) % (size_.usable - kNumber);
    if (local > most) local = least;
  }
  const auto number = static_cast<std::uint64_t>(row);
  const std::size_t cell = varint_bytes(bytes) + varint_bytes(number) + local +
                           (local < bytes ? kNumber : 0);
  const std::size_t with_it = kLeafHeader + kPointer * (offsets_.size() + 1) + used_ + cell;
  if (with_it > size_.usable) close_leaf(made);
  if (cells_.size() < used_ + cell) {
    cells_.resize(std::min(std::max(2 * cells_.size(), used_ + cell), size_.usable));
  }
  offsets_.push_back(static_cast<std::uint16_t>(used_));
  std::byte* at = cells_.data() + used_;
  at += put_varint(at, bytes);
  at += put_varint(at, number);
  used_ += cell;
  assert(kLeafHeader + kPointer * offsets_.size() + used_ <= size_.usable);
  assert(used_ <= cells_.size());
  last_row_ = row;
  if (local == bytes) [[likely]] {
    record.put(at);
  } else {
    add_long(record, local, made);
  }
}

// The rest of a row that is too long for a leaf goes into a chain of pages.
void TablePages::add_long(const RecordEncoder& record, std::size_t local, MadePages& made) {
  assert(local < record.size() && local + kNumber <= used_);
  long_record_.resize(record.size());
  record.put(long_record_.data());
  std::memcpy(cells_.data() + used_ - kNumber - local, long_record_.data(), local);
  links_.push_back({.at = used_ - kNumber, .page = made.bytes.size() / size_.bytes});
  made.is_waited_for = true;
  const std::size_t room = size_.usable - kNumber;
  for (std::size_t done = local; done < long_record_.size(); done += room) {
    const std::size_t begin = made.bytes.size();
    made.bytes.resize(begin + size_.bytes);
    const std::size_t part = std::min(room, long_record_.size() - done);
    std::memcpy(made.bytes.data() + begin + kNumber, long_record_.data() + done, part);
    if (done + room < long_record_.size()) {
      made.links.push_back({.at = begin, .page = begin / size_.bytes + 1});
    }
  }
  if (long_record_.capacity() > kMostKept) std::vector<std::byte>().swap(long_record_);
}

void TablePages::put_leaf(std::byte* page) const {
  const std::size_t content = size_.usable - used_;
  assert(kLeafHeader + kPointer * offsets_.size() <= content);
  assert(std::ranges::is_sorted(offsets_) && (offsets_.empty() || offsets_.back() < used_));
  put_page_header(page, kLeafOfTable, offsets_.size(), content);
  std::byte* pointer = page + kLeafHeader;
  for (const std::uint16_t offset : offsets_) {
    put_u16(pointer, content + offset);
    pointer += kPointer;
  }
  if (used_ > 0) std::memcpy(page + content, cells_.data(), used_);
}

void TablePages::close_leaf(MadePages& made) {
  assert(!offsets_.empty());
  const std::size_t begin = made.bytes.size();
  made.bytes.resize(begin + size_.bytes);
  put_leaf(made.bytes.data() + begin);
  made.leaves.push_back({.page = begin / size_.bytes, .last_row = last_row_});
  const std::size_t content = begin + size_.usable - used_;
  for (const auto& link : links_) {
    made.links.push_back({.at = content + link.at, .page = link.page});
  }
  links_.clear();
  made.is_waited_for = false;
  offsets_.clear();
  used_ = 0;
}

void TablePages::number(MadePages& made, const PageRun& run) {
  for (const auto& link : made.links) {
    assert(link.at + kNumber <= made.bytes.size());
    put_u32(made.bytes.data() + link.at, run.number(link.page));
  }
  if (made.is_waited_for) {
    for (const auto& link : links_) put_u32(cells_.data() + link.at, run.number(link.page));
    links_.clear();
  }
  for (const auto& leaf : made.leaves) {
    assert(children_.empty() || leaf.last_row > children_.back().last_row);
    children_.push_back({.last_row = leaf.last_row, .page = run.number(leaf.page)});
  }
}

// The last child has no cell: it is for all rows behind the others.
void TablePages::put_interior(std::span<const Child> children, std::byte* page) const {
  assert(children.size() > 1);  // SQLite takes an interior page without a cell for damage
  std::size_t content = size_.usable;
  std::byte* pointer = page + kInteriorHeader;
  for (const Child& child : children.first(children.size() - 1)) {
    const auto row = static_cast<std::uint64_t>(child.last_row);
    content -= kNumber + varint_bytes(row);
    put_u32(page + content, child.page);
    put_varint(page + content + kNumber, row);
    put_u16(pointer, content);
    pointer += kPointer;
  }
  assert(kInteriorHeader + kPointer * (children.size() - 1) <= content);
  put_page_header(page, kInteriorOfTable, children.size() - 1, content);
  put_u32(page + kLeafHeader, children.back().page);
}

// How many of the children, from the first on, one interior page takes.
static std::size_t fitting(std::size_t usable, auto children) {
  std::size_t bytes = kInteriorHeader;
  std::size_t count = 0;
  for (const auto& child : children) {
    bytes += kPointer + kNumber + varint_bytes(static_cast<std::uint64_t>(child.last_row));
    if (bytes > usable) return count + 1;  // without a cell, as the last one
    ++count;
  }
  return count;
}

void TablePages::finish(std::uint32_t root, PageFile& file) {
  std::vector<std::byte> page(size_.bytes);
  if (children_.empty()) {
    if (offsets_.empty()) return;  // as SQLite made it
    put_leaf(page.data());
    file.write(root, page);
    return;
  }
  if (!offsets_.empty()) {
    MadePages made;
    close_leaf(made);
    const PageRun run = file.allocate(1);
    file.write(run, made.bytes);
    number(made, run);
  }
  while (fitting(size_.usable, std::span(children_)) < children_.size()) {
    children_ = parents(file);
  }
  put_interior(children_, page.data());
  file.write(root, page);
  children_.clear();
  offsets_.clear();
  used_ = 0;
}

std::vector<TablePages::Child> TablePages::parents(PageFile& file) const {
  std::vector<Child> made;
  std::span<const Child> rest(children_);
  while (!rest.empty()) {
    std::size_t count = fitting(size_.usable, rest);
    if (rest.size() - count == 1) --count;  // one child alone would have no cell
    std::vector<std::byte> page(size_.bytes);
    put_interior(rest.first(count), page.data());
    const PageRun run = file.allocate(1);
    file.write(run, page);
    made.push_back({.last_row = rest[count - 1].last_row, .page = run.number(0)});
    rest = rest.subspan(count);
  }
  return made;
}

}  // namespace wbscope
