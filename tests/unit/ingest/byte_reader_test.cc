// SPDX-License-Identifier: Apache-2.0
// ByteReader: both byte orders, every read with too few bytes, and the cursor
// left where it was.
#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <limits>

#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;

class ByteReaderTest : public ::testing::TestWithParam<ByteOrder> {};

INSTANTIATE_TEST_SUITE_P(Orders, ByteReaderTest,
                         ::testing::Values(ByteOrder::kLittle, ByteOrder::kBig));

TEST_P(ByteReaderTest, ReadsEachWidthInItsOrder) {
  Bytes bytes(GetParam());
  bytes.u8(0x81).u16(0x8123).u32(0x81234567).u64(0x8123456789abcdef);
  ByteReader in(bytes.span(), GetParam());
  EXPECT_EQ(in.read<std::uint8_t>(), 0x81u);
  EXPECT_EQ(in.read<std::uint16_t>(), 0x8123u);
  EXPECT_EQ(in.read<std::uint32_t>(), 0x81234567u);
  EXPECT_EQ(in.read<std::uint64_t>(), 0x8123456789abcdefu);
  EXPECT_EQ(in.left(), 0u);
}

TEST_P(ByteReaderTest, ReadsNegativeIntegers) {
  Bytes bytes(GetParam());
  bytes.u8(0xff).u16(0xfffe).u32(0xfffffffd).u64(0x8000000000000000);
  ByteReader in(bytes.span(), GetParam());
  EXPECT_EQ(in.read<std::int8_t>(), -1);
  EXPECT_EQ(in.read<std::int16_t>(), -2);
  EXPECT_EQ(in.read<std::int32_t>(), -3);
  EXPECT_EQ(in.read<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
}

TEST(ByteReader, OrdersDiffer) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).u32(0x01020304);
  EXPECT_EQ(ByteReader(bytes.span(), ByteOrder::kLittle).read<std::uint32_t>(), 0x01020304u);
  EXPECT_EQ(ByteReader(bytes.span(), ByteOrder::kBig).read<std::uint32_t>(), 0x04030201u);
}

template <typename T>
class TruncatedRead : public ::testing::Test {};

using Widths = ::testing::Types<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                                std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>;
TYPED_TEST_SUITE(TruncatedRead, Widths);

// One byte that is read, then every count of bytes that is too small.
TYPED_TEST(TruncatedRead, GivesNothingAndStays) {
  for (std::size_t have = 0; have < sizeof(TypeParam); ++have) {
    const Bytes bytes = Bytes(ByteOrder::kBig).u8(7).pad_to(1 + have);
    ByteReader in(bytes.span(), ByteOrder::kBig);
    ASSERT_EQ(in.read<std::uint8_t>(), 7u);
    EXPECT_EQ(in.read<TypeParam>(), std::nullopt) << have << " bytes";
    EXPECT_EQ(in.position(), 1u);
    EXPECT_EQ(in.left(), have);
  }
}

TEST(ByteReader, TakesAView) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).text("abcdef");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  const auto view = in.take(4);
  ASSERT_TRUE(view);
  EXPECT_EQ(as_text(*view), "abcd");
  EXPECT_EQ(view->data(), bytes.span().data());  // a view, not a copy
  EXPECT_EQ(in.left(), 2u);
}

TEST(ByteReader, TakeOfTooManyStays) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).text("abcdef");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  ASSERT_TRUE(in.seek(4));
  EXPECT_FALSE(in.take(3));
  EXPECT_FALSE(in.take(std::numeric_limits<std::size_t>::max()));
  EXPECT_EQ(in.position(), 4u);
  EXPECT_TRUE(in.take(2));
  EXPECT_TRUE(in.take(0));
  EXPECT_FALSE(in.take(1));
}

TEST(ByteReader, CStringEndsBehindItsNul) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).cstring("zstd").cstring("").text("x");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  EXPECT_EQ(in.cstring(100), "zstd");
  EXPECT_EQ(in.position(), 5u);
  EXPECT_EQ(in.cstring(100), "");
  EXPECT_EQ(in.position(), 6u);
}

TEST(ByteReader, CStringWithoutNulStays) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).u8(1).text("abc");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  ASSERT_TRUE(in.seek(1));
  EXPECT_EQ(in.cstring(100), std::nullopt);
  EXPECT_EQ(in.position(), 1u);
}

TEST(ByteReader, CStringLooksNoFurtherThanMax) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).cstring("abc");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  EXPECT_EQ(in.cstring(3), std::nullopt);
  EXPECT_EQ(in.position(), 0u);
  EXPECT_EQ(in.cstring(4), "abc");
}

TEST(ByteReader, SeeksUpToTheEndAndNotBehind) {
  const Bytes bytes = Bytes(ByteOrder::kLittle).text("abc");
  ByteReader in(bytes.span(), ByteOrder::kLittle);
  EXPECT_TRUE(in.seek(3));
  EXPECT_FALSE(in.seek(4));
  EXPECT_EQ(in.position(), 3u);
  EXPECT_EQ(in.left(), 0u);
}

TEST(ByteReader, EmptyDataReadsNothing) {
  ByteReader in({}, ByteOrder::kLittle);
  EXPECT_EQ(in.read<std::uint8_t>(), std::nullopt);
  EXPECT_EQ(in.cstring(10), std::nullopt);
  EXPECT_TRUE(in.take(0));
  EXPECT_EQ(in.position(), 0u);
}

}  // namespace
}  // namespace wbscope
