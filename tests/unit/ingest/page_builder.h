// SPDX-License-Identifier: Apache-2.0
// Hand-made ring-buffer pages, and the event that fills them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support.h"

namespace wbscope::testing {

// One page, record by record (include/linux/ring_buffer.h, enum
// ring_buffer_type). Sizes are not checked: tests make wrong ones on purpose.
class PageBuilder {
 public:
  explicit PageBuilder(ByteOrder order = ByteOrder::kLittle, std::uint32_t commit_bytes = 8,
                       std::uint32_t page_bytes = 512)
      : commit_bytes_(commit_bytes), page_bytes_(page_bytes), data_(order) {}

  PageBuilder& start(std::uint64_t ts);
  // Up to 112 bytes, a multiple of 4: the type is the length.
  PageBuilder& record(std::uint32_t delta, std::string_view payload);
  // Type 0: the length stands before the payload.
  PageBuilder& long_record(std::uint32_t delta, std::string_view payload);
  PageBuilder& time_extend(std::uint64_t delta);
  PageBuilder& time_stamp(std::uint64_t ts);
  // A padding record of a discarded event, bytes in all behind its header.
  PageBuilder& discarded(std::uint32_t delta, std::uint32_t bytes);
  // The first word of any record, and a plain word.
  PageBuilder& header(std::uint32_t type, std::uint32_t delta);
  PageBuilder& word(std::uint32_t value);
  PageBuilder& lost(std::optional<std::uint64_t> count);
  // The commit field's size, in place of the right one.
  PageBuilder& claim(std::uint64_t commit);

  [[nodiscard]] std::string build() const;

 private:
  std::uint32_t commit_bytes_;
  std::uint32_t page_bytes_;
  std::uint64_t start_ts_ = 0;
  Bytes data_;
  bool has_lost_ = false;
  std::optional<std::uint64_t> lost_count_;
  std::optional<std::uint64_t> claim_;
};

// The event test:tiny, one field "value" (u32 at 8), and a record of it.
inline constexpr std::uint16_t kTinyId = 77;
[[nodiscard]] std::string tiny_format();
[[nodiscard]] std::string tiny_record(ByteOrder order, std::int32_t tid, std::uint32_t value);

[[nodiscard]] std::string header_page_text(std::uint32_t long_bytes);

}  // namespace wbscope::testing
