// SPDX-License-Identifier: Apache-2.0
// Sections that versions 6 and 7 share: texts, formats, options, clocks, each
// cut short at every byte.
#include "tracedat/section_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;
using testing::error_of;

constexpr std::uint64_t kAt = 0x1000;

SectionReader section(const Bytes& bytes) {
  return {"TEST", kAt, ByteReader(bytes.span(), bytes.order())};
}

// Parses every proper prefix; each must give truncated-section or
// unterminated-text.
template <typename Parse>
void expect_truncations_fail(const Bytes& whole, Parse parse) {
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    TraceInfo info;
    SectionReader in("TEST", kAt, ByteReader(whole.span().first(bytes), whole.order()));
    const auto error = error_of([&] { parse(in, info); });
    ASSERT_TRUE(error) << "cut at " << bytes;
    EXPECT_EQ(error->exit_code(), Exit::kInput);
    EXPECT_TRUE(error->message().slug == "truncated-section" ||
                error->message().slug == "unterminated-text")
        << error->message().slug;
  }
  TraceInfo info;
  SectionReader in = section(whole);
  EXPECT_FALSE(error_of([&] { parse(in, info); }));
}

class SectionTextOrders : public ::testing::TestWithParam<ByteOrder> {};
INSTANTIATE_TEST_SUITE_P(Orders, SectionTextOrders,
                         ::testing::Values(ByteOrder::kLittle, ByteOrder::kBig));

TEST(SectionReader, ErrorSaysWhere) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).u32(1).u8(2);
  SectionReader in = section(bytes);
  EXPECT_EQ(in.read<std::uint32_t>("first"), 1u);
  const auto error = error_of([&] { (void)in.read<std::uint64_t>("second"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().at, "TEST, file offset 0x1004");
  EXPECT_EQ(error->message().text, "second needs 8 bytes, the section has 1 left");
}

TEST(SectionReader, SizedTextLargerThanTheSection) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).text("abc");
  SectionReader in = section(bytes);
  const std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(error_of([&] { (void)in.sized_text("t", huge); }));
  EXPECT_EQ(in.sized_text("t", 3), "abc");
}

TEST_P(SectionTextOrders, HeaderInfo) {
  Bytes bytes(GetParam());
  bytes.cstring("header_page").u64(4).text("page").cstring("header_event").u64(5).text("event");
  TraceInfo info;
  SectionReader in = section(bytes);
  parse_header_info(in, info);
  EXPECT_EQ(info.header_page, "page");
  EXPECT_EQ(in.left(), 0u);
  expect_truncations_fail(bytes, parse_header_info);
}

TEST(SectionText, HeaderInfoUnderAnotherTag) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).cstring("header_pagE").u64(0);
  SectionReader in = section(bytes);
  TraceInfo info;
  const auto error = error_of([&] { parse_header_info(in, info); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "wrong-tag");
}

TEST_P(SectionTextOrders, FtraceFormats) {
  Bytes bytes(GetParam());
  bytes.u32(2).u64(3).text("one").u64(0);
  TraceInfo info;
  SectionReader in = section(bytes);
  parse_ftrace_formats(in, info);
  ASSERT_EQ(info.formats.size(), 2u);
  EXPECT_EQ(info.formats[0].system, "ftrace");
  EXPECT_EQ(info.formats[0].text, "one");
  EXPECT_EQ(info.formats[1].text, "");
  expect_truncations_fail(bytes, parse_ftrace_formats);
}

TEST_P(SectionTextOrders, EventFormats) {
  Bytes bytes(GetParam());
  bytes.u32(2).cstring("writeback").u32(2).u64(1).text("a").u64(2).text("bc");
  bytes.cstring("block").u32(1).u64(1).text("d");
  TraceInfo info;
  SectionReader in = section(bytes);
  parse_event_formats(in, info);
  ASSERT_EQ(info.formats.size(), 3u);
  EXPECT_EQ(info.formats[1].system, "writeback");
  EXPECT_EQ(info.formats[1].text, "bc");
  EXPECT_EQ(info.formats[2].system, "block");
  expect_truncations_fail(bytes, parse_event_formats);
}

TEST(SectionText, CountsOfFormatsHaveACap) {
  const Bytes ftrace = Bytes(ByteOrder::kLittle).u32(kMaxFormats + 1);
  const Bytes events = Bytes(ByteOrder::kLittle).u32(1).cstring("s").u32(0xffffffff);
  TraceInfo info;
  SectionReader in_ftrace = section(ftrace);
  SectionReader in_events = section(events);
  const auto first = error_of([&] { parse_ftrace_formats(in_ftrace, info); });
  const auto second = error_of([&] { parse_event_formats(in_events, info); });
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->message().slug, "too-many-formats");
  EXPECT_EQ(second->message().slug, "too-many-formats");
}

TEST_P(SectionTextOrders, Cmdlines) {
  Bytes bytes(GetParam());
  bytes.u64(6).text("11 dd\n");
  TraceInfo info;
  SectionReader in = section(bytes);
  parse_cmdlines(in, info);
  EXPECT_EQ(info.cmdlines, "11 dd\n");
  expect_truncations_fail(bytes, parse_cmdlines);
}

TEST(SectionText, SelectedClock) {
  EXPECT_EQ(selected_clock("local [global] counter uptime"), "global");
  EXPECT_EQ(selected_clock("[local] global\n"), "local");
  EXPECT_EQ(selected_clock("mono"), "mono");
  EXPECT_EQ(selected_clock("mono boot\n"), "mono");
  EXPECT_EQ(selected_clock("boot\n"), "boot");
  EXPECT_EQ(selected_clock(""), "");
  EXPECT_EQ(selected_clock("local [global"), "local");
  EXPECT_EQ(selected_clock("] [x86-tsc]"), "x86-tsc");
}

// The TraceInfo after one option; nothing when it is not a common one.
std::optional<TraceInfo> after_option(Option option, const Bytes& bytes) {
  TraceInfo info;
  SectionReader in = section(bytes);
  if (!parse_common_option(static_cast<std::uint16_t>(option), in, info)) return std::nullopt;
  return info;
}

std::optional<TraceInfo> after_option(Option option, std::string_view text) {
  return after_option(option, Bytes(ByteOrder::kLittle).text(text));
}

TEST(Options, Texts) {
  EXPECT_EQ(after_option(Option::kTraceClock, "local [mono]\n")->clock, "mono");
  EXPECT_EQ(after_option(Option::kUname, std::string_view("Linux h 6.1\0rest", 16))->uname,
            "Linux h 6.1");
  EXPECT_EQ(after_option(Option::kVersion, "3.1.6")->recorder_version, "3.1.6");
  const auto info = after_option(Option::kCpuStat, "CPU: 0\nentries: 5\n");
  ASSERT_EQ(info->cpu_stats.size(), 1u);
  EXPECT_EQ(info->cpu_stats[0], "CPU: 0\nentries: 5");
}

TEST(Options, TimeOffsets) {
  EXPECT_EQ(after_option(Option::kOffset, "-5")->ts_offset_ns, -5);
  EXPECT_EQ(after_option(Option::kOffset, "0x10")->ts_offset_ns, 16);
  EXPECT_EQ(after_option(Option::kOffset, "no number")->ts_offset_ns, 0);
  EXPECT_EQ(after_option(Option::kDate, "0x3e8")->ts_offset_ns, 1'000'000);  // microseconds
}

// Sums and products of hostile offsets must not overflow (UBSan watches).
TEST(Options, HostileTimeOffsets) {
  EXPECT_TRUE(after_option(Option::kDate, "0x7fffffffffffffff"));
  EXPECT_TRUE(after_option(Option::kDate, "-99999999999999999999"));
  TraceInfo info;
  info.ts_offset_ns = std::numeric_limits<std::int64_t>::max();
  const Bytes bytes = Bytes(ByteOrder::kLittle).text("9223372036854775807");
  SectionReader in = section(bytes);
  EXPECT_TRUE(parse_common_option(static_cast<std::uint16_t>(Option::kOffset), in, info));
}

TEST_P(SectionTextOrders, NumbersAndTheirTruncations) {
  const auto bytes = [] { return Bytes(GetParam()); };
  EXPECT_EQ(after_option(Option::kCpuCount, bytes().u32(23))->cpus_count, 23u);
  EXPECT_EQ(after_option(Option::kTraceId, bytes().u64(1ull << 40))->trace_id, 1ull << 40);
  const auto tsc = after_option(Option::kTsc2Nsec, bytes().u32(7).u32(10).u64(99));
  ASSERT_TRUE(tsc);
  EXPECT_TRUE(tsc->has_tsc);
  EXPECT_EQ(tsc->tsc_multiplier, 7u);
  EXPECT_EQ(tsc->tsc_shift, 10u);
  EXPECT_EQ(tsc->tsc_offset, 99u);
  for (const auto& [option, size] :
       {std::pair(Option::kCpuCount, 4u), {Option::kTraceId, 8u}, {Option::kTsc2Nsec, 16u}}) {
    for (std::size_t have = 0; have < size; ++have) {
      const Bytes cut = bytes().pad_to(have);
      EXPECT_TRUE(error_of([&] { (void)after_option(option, cut); })) << have;
    }
  }
}

TEST(Options, TscShiftOf64IsRefused) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).u32(1).u32(64).u64(0);
  const auto error = error_of([&] { (void)after_option(Option::kTsc2Nsec, bytes); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "bad-option");
}

TEST(Options, OthersAreLeftToTheCaller) {
  EXPECT_FALSE(after_option(Option::kBuffer, ""));
  EXPECT_FALSE(after_option(static_cast<Option>(6), "hook"));
  EXPECT_FALSE(after_option(static_cast<Option>(999), "from the future"));
}

}  // namespace
}  // namespace wbscope
