// SPDX-License-Identifier: Apache-2.0
// Walks the records of one ring-buffer page (include/linux/ring_buffer.h,
// enum ring_buffer_type; kernel/trace/ring_buffer.c).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/byte_reader.h"
#include "base/counters.h"

namespace wbscope {

// From events/header_page of the traced kernel.
struct PageLayout {
  std::uint32_t commit_offset = 8;
  std::uint32_t commit_bytes = 8;  // local_t: 4 on 32-bit kernels
  std::uint32_t data_offset = 16;
};

// How many events were lost before a page; no count when the kernel had no
// room to store it.
struct LostBefore {
  std::optional<std::uint64_t> count;
};

struct PageResult {
  bool is_page = false;  // false: the header is not one of a page
  bool complete = true;  // false: a record reached over the end; rest skipped
  std::uint32_t bad_offset = 0;
  std::uint64_t first_ts = 0;
  std::optional<LostBefore> lost;
};

// Calls on_record(ts, record) for each record in the page.
// ts is raw, in units of the trace clock. A page that claims more data than
// it holds is read as far as it goes.
template <ByteOrder kOrder, typename OnRecord>
PageResult walk_page(std::span<const std::byte> page, const PageLayout& layout,
                     Counters& counters, OnRecord&& on_record) {
  constexpr std::uint32_t kTypePadding = 29;
  constexpr std::uint32_t kTypeTimeExtend = 30;
  constexpr std::uint32_t kTypeTimeStamp = 31;
  constexpr unsigned kDeltaBits = 27;
  constexpr std::uint32_t kDeltaMask = (1u << kDeltaBits) - 1;
  constexpr std::uint64_t kCommitMask = (1u << 27) - 1;
  constexpr std::uint64_t kMissedEvents = 1u << 31;
  constexpr std::uint64_t kMissedStored = 1u << 30;
  constexpr std::uint64_t kStampHighBits = 0xf8ull << 56;  // not in a time stamp record

  PageResult result;
  const std::byte* const base = page.data();
  if (page.size() < layout.data_offset) return result;
  const std::uint64_t commit = layout.commit_bytes == 8
                                   ? load<std::uint64_t>(base + layout.commit_offset, kOrder)
                                   : load<std::uint32_t>(base + layout.commit_offset, kOrder);
  const std::size_t data_bytes = commit & kCommitMask;
  if (data_bytes > page.size() - layout.data_offset) return result;
  result.is_page = true;

  std::uint64_t ts = load<std::uint64_t>(base, kOrder);
  const std::byte* at = base + layout.data_offset;
  const std::byte* const end = at + data_bytes;
  if ((commit & kMissedEvents) != 0) {
    LostBefore lost;
    const std::size_t room = page.size() - layout.data_offset - data_bytes;
    if ((commit & kMissedStored) != 0 && room >= layout.commit_bytes) {
      lost.count = layout.commit_bytes == 8 ? load<std::uint64_t>(end, kOrder)
                                            : load<std::uint32_t>(end, kOrder);
    }
    result.lost = lost;
  }
  result.first_ts = ts;

  while (end - at >= 4) {
    const auto header = load<std::uint32_t>(at, kOrder);
    const std::uint32_t type =
        kOrder == ByteOrder::kLittle ? header & 31u : header >> kDeltaBits;
    const std::uint32_t delta =
        kOrder == ByteOrder::kLittle ? header >> 5 : header & kDeltaMask;
    const std::byte* data = at + 4;
    const auto left = static_cast<std::size_t>(end - data);

    if (type > 0 && type < kTypePadding) [[likely]] {
      const std::size_t bytes = type * 4u;
      if (bytes > left) break;
      ts += delta;
      on_record(ts, std::span<const std::byte>(data, bytes));
      at = data + bytes;
      continue;
    }
    if (type == kTypePadding && delta == 0) {  // nothing more on this page
      at = end;
      break;
    }
    if (left < 4) break;
    const auto word = load<std::uint32_t>(data, kOrder);
    if (type == kTypeTimeExtend) {
      ts += (static_cast<std::uint64_t>(word) << kDeltaBits) + delta;
      at = data + 4;
    } else if (type == kTypeTimeStamp) {
      const std::uint64_t high = ts & kStampHighBits;
      std::uint64_t stamp = ((static_cast<std::uint64_t>(word) << kDeltaBits) + delta) | high;
      if (high != 0 && stamp < ts) stamp += std::uint64_t{1} << 59;  // rb_fix_abs_ts()
      ts = stamp;
      at = data + 4;
    } else if (type == kTypePadding) {  // a discarded record; its delta counts
      if (word < 4 || word > left) break;
      ts += delta;
      counters.add(Counter::kDiscardedRecords);
      at = data + word;
    } else {  // type 0: the length stands in the first word, itself included
      const std::size_t bytes = (static_cast<std::size_t>(word) + 3) & ~std::size_t{3};
      if (word < 4 || bytes > left) break;
      ts += delta;
      on_record(ts, std::span<const std::byte>(data + 4, bytes - 4));
      at = data + bytes;
    }
  }
  if (at != end) {
    result.complete = false;
    result.bad_offset = static_cast<std::uint32_t>(at - base);
  }
  return result;
}

}  // namespace wbscope
