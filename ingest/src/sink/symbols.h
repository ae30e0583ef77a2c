// SPDX-License-Identifier: Apache-2.0
// Names for the addresses of kernel code that loaded events hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "sink/database.h"

namespace wbscope {

// Most events come from a few places, so a small table in front of the set
// answers nearly every insert.
class AddressSet {
 public:
  // in_front: places of the small table, a power of two.
  explicit AddressSet(std::size_t in_front = 4096) : seen_(in_front) {}

  void insert(std::uint64_t address) {
    std::uint64_t& seen = seen_[(address >> 2) & (seen_.size() - 1)];
    if (seen == address) [[likely]] return;
    seen = address;
    if (all_.size() < kMaxAddresses) all_.insert(address);
  }
  [[nodiscard]] const std::unordered_set<std::uint64_t>& all() const noexcept { return all_; }

 private:
  // Code has fewer; a field full of other numbers must not take all memory.
  static constexpr std::size_t kMaxAddresses = 1u << 19;
  std::vector<std::uint64_t> seen_;
  std::unordered_set<std::uint64_t> all_;
};

// Fills table symbol: for each address, the symbol of /proc/kallsyms with the
// greatest address that is not above it.
void write_symbols(Database& db, const AddressSet& addresses, std::string_view kallsyms);

}  // namespace wbscope
