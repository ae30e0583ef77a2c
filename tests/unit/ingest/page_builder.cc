// SPDX-License-Identifier: Apache-2.0
// Hand-made ring-buffer pages.
#include "page_builder.h"

namespace wbscope::testing {
namespace {

constexpr std::uint32_t kPadding = 29, kTimeExtend = 30, kTimeStamp = 31;
constexpr std::uint64_t kDeltaMask = (1u << 27) - 1;
constexpr std::uint64_t kMissedEvents = 1u << 31, kMissedStored = 1u << 30;

}  // namespace

PageBuilder& PageBuilder::start(std::uint64_t ts) {
  start_ts_ = ts;
  return *this;
}
PageBuilder& PageBuilder::header(std::uint32_t type, std::uint32_t delta) {
  return word(data_.order() == ByteOrder::kLittle ? (delta << 5) | type : (type << 27) | delta);
}
PageBuilder& PageBuilder::word(std::uint32_t value) {
  data_.u32(value);
  return *this;
}
PageBuilder& PageBuilder::record(std::uint32_t delta, std::string_view payload) {
  header(static_cast<std::uint32_t>(payload.size() / 4), delta);
  data_.text(payload);
  return *this;
}
PageBuilder& PageBuilder::long_record(std::uint32_t delta, std::string_view payload) {
  header(0, delta).word(static_cast<std::uint32_t>(payload.size() + 4));
  data_.text(payload).align(4);
  return *this;
}
PageBuilder& PageBuilder::time_extend(std::uint64_t delta) {
  return header(kTimeExtend, static_cast<std::uint32_t>(delta & kDeltaMask))
      .word(static_cast<std::uint32_t>(delta >> 27));
}
PageBuilder& PageBuilder::time_stamp(std::uint64_t ts) {
  return header(kTimeStamp, static_cast<std::uint32_t>(ts & kDeltaMask))
      .word(static_cast<std::uint32_t>(ts >> 27));
}
PageBuilder& PageBuilder::discarded(std::uint32_t delta, std::uint32_t bytes) {
  header(kPadding, delta).word(bytes);
  data_.pad_to(data_.size() + bytes - 4);
  return *this;
}
PageBuilder& PageBuilder::lost(std::optional<std::uint64_t> count) {
  has_lost_ = true;
  lost_count_ = count;
  return *this;
}
PageBuilder& PageBuilder::claim(std::uint64_t commit) {
  claim_ = commit;
  return *this;
}

std::string PageBuilder::build() const {
  Bytes out(data_.order());
  std::uint64_t commit = claim_.value_or(data_.size());
  if (has_lost_) commit |= kMissedEvents | (lost_count_ ? kMissedStored : 0);
  out.u64(start_ts_).integer(commit, commit_bytes_).text(data_.str());
  if (lost_count_) out.integer(*lost_count_, commit_bytes_);
  return out.pad_to(page_bytes_).str();
}

std::string tiny_format() {
  return "name: tiny\nID: 77\nformat:\n"
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
         "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
         "\tfield:u32 value;\toffset:8;\tsize:4;\tsigned:0;\n\n"
         "print fmt: \"value=%u\", REC->value\n";
}

std::string tiny_record(ByteOrder order, std::int32_t tid, std::uint32_t value) {
  const auto pid = static_cast<std::uint32_t>(tid);
  return Bytes(order).u16(kTinyId).u16(0).u32(pid).u32(value).str();
}

std::string header_page_text(std::uint32_t long_bytes) {
  const std::string size = std::to_string(long_bytes);
  return "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
         "\tfield: local_t commit;\toffset:8;\tsize:" + size + ";\tsigned:1;\n"
         "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
         "\tfield: char data;\toffset:" + std::to_string(8 + long_bytes) +
         ";\tsize:496;\tsigned:1;\n";
}

}  // namespace wbscope::testing
