// SPDX-License-Identifier: Apache-2.0
// trace.dat version 6: one fixed order of parts, and what is left of a
// damaged one.
#include <gtest/gtest.h>

#include "base/input_file.h"
#include "trace_builder.h"
#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

using testing::build_v6;
using testing::Bytes;
using testing::error_of;
using testing::kSmallTraceEvents;
using testing::PageBuilder;
using testing::read_back;
using testing::ReadBack;
using testing::small_trace;
using testing::TempDir;
using testing::TraceSpec;

ReadBack read_bytes(const std::string& bytes) {
  const TempDir dir;
  return read_back(dir.write("trace.dat", bytes));
}

std::string slug_of(const std::string& bytes) {
  const auto error = error_of([&] { (void)read_bytes(bytes); });
  return error ? error->message().slug : "no error";
}

std::uint16_t id_of(Option option) { return static_cast<std::uint16_t>(option); }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ContainerV6, SaysWhatTheFileSays) {
  TraceSpec spec = small_trace();
  spec.options = {{id_of(Option::kUname), "Linux host 4.4.88 aarch64"},
                  {id_of(Option::kCpuStat), "CPU: 0\nentries: 3"}};
  const ReadBack back = read_bytes(build_v6(spec));
  EXPECT_EQ(back.info.version, 6);
  EXPECT_EQ(back.info.page_bytes, 512u);
  EXPECT_EQ(back.info.header_page, spec.header_page);
  EXPECT_EQ(back.info.cmdlines, "11 dd\n");
  EXPECT_EQ(back.info.uname, "Linux host 4.4.88 aarch64");
  EXPECT_EQ(back.info.clock, "global");
  EXPECT_EQ(back.info.cpus_count, 2u);
  EXPECT_EQ(back.info.cpu_stats.size(), 1u);
  ASSERT_EQ(back.info.formats.size(), 1u);
  ASSERT_EQ(back.info.buffers.size(), 1u);
  EXPECT_FALSE(back.info.buffers[0].compressed);
  EXPECT_EQ(back.info.buffers[0].regions.size(), 2u);
  EXPECT_EQ(back.events, kSmallTraceEvents);
  EXPECT_FALSE(back.damaged());
}

TEST(ContainerV6, BigEndianOf32Bits) {
  const ReadBack back = read_bytes(build_v6(testing::one_event_of_32_bits()));
  EXPECT_EQ(back.info.order, ByteOrder::kBig);
  EXPECT_EQ(back.events, 1u);
  EXPECT_FALSE(back.damaged());
}

TEST(ContainerV6, SecondInstance) {
  TraceSpec spec = small_trace();
  spec.more_pages = {spec.cpu_pages[1], spec.cpu_pages[0]};
  const ReadBack back = read_bytes(build_v6(spec));
  ASSERT_EQ(back.info.buffers.size(), 2u);
  EXPECT_EQ(back.info.buffers[1].name, "second");
  EXPECT_EQ(back.events, 2 * kSmallTraceEvents);
}

TEST(ContainerV6, SecondInstanceWithoutItsTagIsDamage) {
  TraceSpec spec = small_trace();
  spec.more_pages = spec.cpu_pages;
  std::string file = build_v6(spec);
  file[file.rfind("flyrecord")] = 'F';
  const ReadBack back = read_bytes(file);
  EXPECT_EQ(back.info.buffers.size(), 1u);
  EXPECT_EQ(back.events, kSmallTraceEvents);
  ASSERT_EQ(back.info.damage.size(), 2u);
  EXPECT_EQ(back.info.damage[0].slug, "wrong-tag");
  EXPECT_EQ(back.info.damage[1].slug, "unclaimed-data");  // its pages
}

TEST(ContainerV6, CutAtEveryByte) {
  EXPECT_EQ(testing::check_every_truncation(build_v6(small_trace()), kSmallTraceEvents), "");
}

TEST(ContainerV6, CutPagesKeepTheOthers) {
  const std::string file = build_v6(small_trace());
  const ReadBack back = read_bytes(file.substr(0, file.size() - 512));
  EXPECT_EQ(back.events, kSmallTraceEvents - 2);  // two events on the last page
  ASSERT_FALSE(back.info.damage.empty());
  EXPECT_EQ(back.info.damage[0].slug, "truncated-trace");
  EXPECT_EQ(back.info.damage[0].text, "data of cpu 1 holds 512 of 1024 bytes");
}

TEST(ContainerV6, EveryByteInverted) {
  EXPECT_EQ(testing::check_every_inversion(build_v6(small_trace()), kSmallTraceEvents), "");
}

TEST(ContainerV6, TagsThatAreNotThere) {
  const std::string good = build_v6(small_trace());
  EXPECT_EQ(slug_of(good), "no error");
  EXPECT_EQ(slug_of(replaced(good, "header_page", "header_pag_")), "wrong-tag");
  EXPECT_EQ(slug_of(replaced(good, "flyrecord", "flyrecorD")), "wrong-tag");
  EXPECT_EQ(slug_of(replaced(good, "flyrecord", std::string("latency  \0", 9))), "latency-trace");
}

TEST(ContainerV6, TooManyCpus) {
  TraceSpec spec = small_trace();
  const std::string good = build_v6(spec);
  const std::string count = Bytes(spec.order).text("11 dd\n").u32(2).str();
  const std::string many = Bytes(spec.order).text("11 dd\n").u32(kMaxCpus + 1).str();
  EXPECT_EQ(slug_of(replaced(good, count, many)), "too-many-cpus");
}

// The option may name more CPUs than there are entries; the table then runs
// over the end of the file and that is an error, not a crash.
TEST(ContainerV6, CpuCountOptionHasTheLastWord) {
  TraceSpec spec = small_trace();
  spec.options = {{id_of(Option::kCpuCount), Bytes(spec.order).u32(1).str()}};
  const ReadBack one = read_bytes(build_v6(spec));
  EXPECT_EQ(one.info.buffers[0].regions.size(), 1u);
  EXPECT_EQ(one.events, kSmallTraceEvents / 2);
  spec.options[0].second = Bytes(spec.order).u32(0xffffffff).str();
  EXPECT_EQ(slug_of(build_v6(spec)), "truncated-section");
}

TEST(ContainerV6, RegionsBehindTheEndAreCutOff) {
  TraceSpec spec = small_trace();
  std::string file = build_v6(spec);
  const auto table = file.rfind("flyrecord") + 10;
  const std::string huge = Bytes(spec.order).u64(~0ull - 7).u64(~0ull).str();
  file.replace(table, 16, huge);
  const ReadBack back = read_bytes(file);
  EXPECT_EQ(back.info.buffers[0].regions[0].bytes, 0u);
  EXPECT_EQ(back.events, kSmallTraceEvents / 2);
  EXPECT_FALSE(back.info.damage.empty());
}

}  // namespace
}  // namespace wbscope
