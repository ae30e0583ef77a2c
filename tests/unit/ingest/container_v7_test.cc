// SPDX-License-Identifier: Apache-2.0
// trace.dat version 7: what a file says, compressed or not, and what is left
// of a damaged one.
#include <gtest/gtest.h>

#include "base/input_file.h"
#include "trace_builder.h"
#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

using testing::Bytes;
using testing::build_v7;
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

Error error_of_bytes(const std::string& bytes) {
  const auto error = error_of([&] { (void)read_bytes(bytes); });
  EXPECT_TRUE(error);
  return error.value_or(Error(Exit::kBug, {}));
}

std::uint16_t id_of(Option option) { return static_cast<std::uint16_t>(option); }

class ContainerV7Compressions : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static TraceSpec spec() {
    TraceSpec spec = small_trace();
    spec.compression = GetParam();
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Names, ContainerV7Compressions, ::testing::Values("none", "zlib", "zstd"));

TEST_P(ContainerV7Compressions, SaysWhatTheFileSays) {
  TraceSpec wanted = spec();
  wanted.options = {{id_of(Option::kUname), "Linux host 6.1.0 x86_64"},
                    {id_of(Option::kOffset), "-17"},
                    {id_of(Option::kTsc2Nsec), Bytes(wanted.order).u32(3).u32(4).u64(5).str()}};
  const ReadBack back = read_bytes(build_v7(wanted));
  EXPECT_EQ(back.info.version, 7);
  EXPECT_EQ(back.info.order, ByteOrder::kLittle);
  EXPECT_EQ(back.info.long_bytes, 8u);
  EXPECT_EQ(back.info.page_bytes, 512u);
  EXPECT_EQ(back.info.compression_name, GetParam());
  EXPECT_EQ(back.info.header_page, wanted.header_page);
  EXPECT_EQ(back.info.cmdlines, "11 dd\n");
  EXPECT_EQ(back.info.uname, "Linux host 6.1.0 x86_64");
  EXPECT_EQ(back.info.clock, "global");
  EXPECT_EQ(back.info.ts_offset_ns, -17);
  EXPECT_TRUE(back.info.has_tsc);
  EXPECT_EQ(back.info.cpus_count, 2u);
  ASSERT_EQ(back.info.formats.size(), 1u);
  EXPECT_EQ(back.info.formats[0].system, "test");
  ASSERT_EQ(back.info.buffers.size(), 1u);
  EXPECT_EQ(back.info.buffers[0].name, "");
  EXPECT_EQ(back.info.buffers[0].page_bytes, 512u);
  ASSERT_EQ(back.info.buffers[0].regions.size(), 2u);
  EXPECT_EQ(back.info.buffers[0].regions[1].cpu, 1u);
  EXPECT_EQ(back.events, kSmallTraceEvents);
  EXPECT_FALSE(back.damaged());
}

TEST_P(ContainerV7Compressions, SecondInstance) {
  TraceSpec two = spec();
  two.more_pages = {two.cpu_pages[0]};
  const ReadBack back = read_bytes(build_v7(two));
  ASSERT_EQ(back.info.buffers.size(), 2u);
  EXPECT_EQ(back.info.buffers[1].name, "second");
  EXPECT_EQ(back.info.buffers[1].clock, "global");
  EXPECT_EQ(back.events, kSmallTraceEvents + 3);
}

TEST_P(ContainerV7Compressions, CutAtEveryByte) {
  EXPECT_EQ(testing::check_every_truncation(build_v7(spec()), kSmallTraceEvents), "");
}

TEST_P(ContainerV7Compressions, EveryByteInverted) {
  EXPECT_EQ(testing::check_every_inversion(build_v7(spec()), kSmallTraceEvents), "");
}

TEST(ContainerV7, BigEndianOf32Bits) {
  const ReadBack back = read_bytes(build_v7(testing::one_event_of_32_bits()));
  EXPECT_EQ(back.info.order, ByteOrder::kBig);
  EXPECT_EQ(back.info.long_bytes, 4u);
  EXPECT_EQ(back.events, 1u);
  EXPECT_FALSE(back.damaged());
}

TEST(ContainerV7, CompressedFileWithoutOptionsIsSalvaged) {
  TraceSpec spec = small_trace();
  spec.compression = "zstd";
  std::string file = build_v7(spec);
  // It stands behind magic 10, version 2, 1, 1, 4, "zstd" 5, "1" 2.
  file.replace(25, 8, Bytes(ByteOrder::kLittle).u64(0).str());
  const ReadBack back = read_bytes(file);
  EXPECT_EQ(back.events, kSmallTraceEvents);
  ASSERT_FALSE(back.info.damage.empty());
  EXPECT_EQ(back.info.damage[0].slug, "no-options");
}

// Nothing is read twice when a part beside the buffers is missing.
TEST_P(ContainerV7Compressions, MissingHeaderPageDoesNotDoubleEvents) {
  TraceSpec bare = spec();
  bare.header_page = "";
  const ReadBack back = read_bytes(build_v7(bare));
  EXPECT_EQ(back.info.buffers.size(), 1u);
  EXPECT_EQ(back.events, kSmallTraceEvents);
}

TEST(ContainerV7, NoTrace) {
  EXPECT_EQ(error_of_bytes("").message().slug, "not-a-trace");
  EXPECT_EQ(error_of_bytes("SQLite format 3").message().slug, "not-a-trace");
  EXPECT_EQ(error_of_bytes("").exit_code(), Exit::kInput);
}

TEST(ContainerV7, HeaderOfAnotherKind) {
  const std::string good = build_v7(small_trace());
  const auto with = [&good](std::size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    return error_of_bytes(bad).message();
  };
  EXPECT_EQ(with(10, '8').slug, "unknown-version");
  EXPECT_NE(with(10, '8').text.find("\"8\""), std::string::npos);
  EXPECT_EQ(with(12, 2).slug, "bad-header");     // byte order
  EXPECT_EQ(with(13, 5).slug, "bad-header");     // size of long
  EXPECT_EQ(with(14, 1).slug, "bad-page-size");  // 513
  EXPECT_EQ(with(18, 'N').slug, "unknown-compression");
}

TEST(ContainerV7, PageSizesAtTheCaps) {
  const auto slug_for = [](std::uint32_t page_bytes) {
    Bytes file(ByteOrder::kLittle);
    file.text("\x17\x08\x44tracing").cstring("7").u8(0).u8(8).u32(page_bytes);
    return error_of_bytes(file.str()).message().slug;
  };
  EXPECT_EQ(slug_for(kMinPageBytes / 2), "bad-page-size");
  EXPECT_EQ(slug_for(kMaxPageBytes * 2), "bad-page-size");
  EXPECT_EQ(slug_for(0), "bad-page-size");
  EXPECT_EQ(slug_for(kMinPageBytes), "unterminated-text");  // the next thing to be read
  EXPECT_EQ(slug_for(kMaxPageBytes), "unterminated-text");
}

// The damage that an options section with these bytes gives.
Message damage_of_options(const Bytes& options, std::uint64_t claimed_bytes) {
  Bytes file(ByteOrder::kLittle);
  file.text("\x17\x08\x44tracing").cstring("7").u8(0).u8(8).u32(512).cstring("none").cstring("1");
  const std::uint64_t at = file.size() + 8;
  file.u64(at).u16(0).u16(0).u32(0).u64(claimed_bytes).text(options.str());
  const TempDir dir;
  const ReadBack back = read_back(dir.write("trace.dat", file.str()));
  EXPECT_FALSE(back.info.damage.empty());
  return back.info.damage.empty() ? Message{} : back.info.damage.front();
}

Message damage_of_options(const Bytes& options) {
  return damage_of_options(options, options.size());
}

TEST(ContainerV7, OptionsThatPointAtThemselves) {
  const Bytes done = Bytes(ByteOrder::kLittle).u16(0).u32(8).u64(32);
  // The section lies at 33: magic 10, version 2, 1, 1, 4, "none" 5, "1" 2, 8.
  const Bytes loop = Bytes(ByteOrder::kLittle).u16(0).u32(8).u64(33);
  EXPECT_EQ(damage_of_options(loop).slug, "options-loop");
  EXPECT_NE(damage_of_options(done).slug, "options-loop");
}

TEST(ContainerV7, OptionsWithoutAnEnd) {
  EXPECT_EQ(damage_of_options(Bytes(ByteOrder::kLittle)).slug, "no-done-option");
}

TEST(ContainerV7, OptionThatPointsAtAnotherSection) {
  const Bytes formats = Bytes(ByteOrder::kLittle).u16(18).u32(8).u64(33);
  EXPECT_EQ(damage_of_options(formats).slug, "wrong-section");
}

TEST(ContainerV7, OptionsLargerThanTheFileOrTheCap) {
  const Bytes none(ByteOrder::kLittle);
  EXPECT_EQ(damage_of_options(none, 1).slug, "truncated-trace");
  EXPECT_EQ(damage_of_options(none, kMaxSectionBytes).slug, "truncated-trace");
  EXPECT_EQ(damage_of_options(none, kMaxSectionBytes + 1).slug, "section-too-large");
  EXPECT_EQ(damage_of_options(none, ~0ull).slug, "section-too-large");
}

TEST(ContainerV7, OptionLargerThanItsSection) {
  EXPECT_EQ(damage_of_options(Bytes(ByteOrder::kLittle).u16(5).u32(0xffffffff)).slug,
            "truncated-section");
}

// A small file that has one large section, and names it again and again.
TEST(ContainerV7, SectionsTogetherHaveACap) {
  TraceSpec spec = small_trace();
  spec.compression = "zstd";
  spec.formats.push_back({"big", std::string(8u << 20, ' ')});
  EXPECT_FALSE(read_bytes(build_v7(spec)).damaged());
  spec.formats_named = 1000;
  const std::string file = build_v7(spec);
  EXPECT_LT(file.size(), 1u << 16);
  const ReadBack back = read_bytes(file);
  EXPECT_LE(back.info.formats.size(), 2 * (kMaxAllSectionBytes >> 23));
  ASSERT_FALSE(back.info.damage.empty());
  EXPECT_EQ(back.info.damage[0].slug, "sections-too-large");
}

TEST(ContainerV7, BuffersTogetherHaveACapOfCpus) {
  Bytes body(ByteOrder::kLittle);
  body.u64(55).cstring("").cstring("mono").u32(512).u32(kMaxCpus);
  for (std::uint32_t i = 0; i < kMaxCpus; ++i) body.u32(i).u64(0).u64(0);
  // An unknown option holds what passes for the section's header, at 55.
  Bytes options(ByteOrder::kLittle);
  options.u16(99).u32(16).u16(3).u16(0).u32(0).u64(0);
  for (std::size_t i = 0; i < kMaxRegions / kMaxCpus + 1; ++i) {
    options.u16(3).u32(body.size()).text(body.str());
  }
  EXPECT_EQ(damage_of_options(options).slug, "too-many-cpus");
}

TEST(ContainerV7, BufferTablesOutOfBounds) {
  const auto buffer = [](std::uint32_t page_bytes, std::uint32_t cpus, std::uint32_t cpu) {
    Bytes body(ByteOrder::kLittle);
    body.u64(0).cstring("").cstring("mono").u32(page_bytes).u32(cpus).u32(cpu).u64(0).u64(0);
    const Bytes option = Bytes(ByteOrder::kLittle).u16(3).u32(body.size()).text(body.str());
    return damage_of_options(option).slug;
  };
  EXPECT_EQ(buffer(511, 1, 0), "bad-page-size");
  EXPECT_EQ(buffer(kMaxPageBytes + 1, 1, 0), "bad-page-size");
  EXPECT_EQ(buffer(512, kMaxCpus + 1, 0), "too-many-cpus");
  EXPECT_EQ(buffer(512, 1, kMaxCpus), "bad-cpu");
  EXPECT_EQ(buffer(512, 2, 0), "truncated-section");
}

}  // namespace
}  // namespace wbscope
