// SPDX-License-Identifier: Apache-2.0
// walk_page: every type of record on hand-made pages, in both byte orders, and
// pages that claim what they do not hold.
#include "tracedat/page_walker.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "page_builder.h"

namespace wbscope {
namespace {

using testing::PageBuilder;

struct Seen {
  std::uint64_t ts;
  std::string bytes;
  friend bool operator==(const Seen&, const Seen&) = default;
  friend void PrintTo(const Seen& seen, std::ostream* out) {
    *out << seen.ts << ":" << ::testing::PrintToString(seen.bytes);
  }
};

struct Walk {
  PageResult result;
  std::vector<Seen> seen;
  Counters counters;
};

Walk walk(const std::string& page, ByteOrder order = ByteOrder::kLittle,
          std::uint32_t commit_bytes = 8) {
  Walk out;
  const PageLayout layout{.commit_offset = 8, .commit_bytes = commit_bytes,
                          .data_offset = 8 + commit_bytes};
  const auto bytes = std::as_bytes(std::span(page.data(), page.size()));
  const auto keep = [&out](std::uint64_t ts, std::span<const std::byte> record) {
    out.seen.push_back({ts, std::string(as_text(record))});
  };
  out.result = order == ByteOrder::kLittle
                   ? walk_page<ByteOrder::kLittle>(bytes, layout, out.counters, keep)
                   : walk_page<ByteOrder::kBig>(bytes, layout, out.counters, keep);
  return out;
}

// (byte order, bytes of the commit field)
class PageLayouts : public ::testing::TestWithParam<std::pair<ByteOrder, std::uint32_t>> {
 protected:
  [[nodiscard]] static PageBuilder page() {
    return PageBuilder(GetParam().first, GetParam().second);
  }
  [[nodiscard]] Walk walk_built(const PageBuilder& builder) const {
    return walk(builder.build(), GetParam().first, GetParam().second);
  }
};

INSTANTIATE_TEST_SUITE_P(Layouts, PageLayouts,
                         ::testing::Values(std::pair(ByteOrder::kLittle, 8u),
                                           std::pair(ByteOrder::kLittle, 4u),
                                           std::pair(ByteOrder::kBig, 8u),
                                           std::pair(ByteOrder::kBig, 4u)));

TEST_P(PageLayouts, PlainRecordsAddTheirDeltas) {
  const std::string longest(112, 'x');  // type 28
  const Walk w = walk_built(
      page().start(1000).record(0, "aaaa").record(5, "bbbbbbbb").record((1u << 27) - 1, longest));
  EXPECT_EQ(w.seen, (std::vector<Seen>{
                        {1000, "aaaa"}, {1005, "bbbbbbbb"}, {1005 + (1u << 27) - 1, longest}}));
  EXPECT_TRUE(w.result.is_page);
  EXPECT_TRUE(w.result.complete);
  EXPECT_EQ(w.result.first_ts, 1000u);
  EXPECT_FALSE(w.result.lost);
}

TEST_P(PageLayouts, Type0HasItsLengthInAWord) {
  const std::string payload(200, 'y');
  const Walk w = walk_built(page().start(7).long_record(2, payload).record(3, "next"));
  EXPECT_EQ(w.seen, (std::vector<Seen>{{9, payload}, {12, "next"}}));
}

// A length that is no multiple of 4 is rounded up, as the kernel stores it.
TEST_P(PageLayouts, Type0IsAligned) {
  const Walk w = walk_built(page().long_record(0, "12345").record(1, "next"));
  ASSERT_EQ(w.seen.size(), 2u);
  EXPECT_EQ(w.seen[0].bytes, std::string("12345\0\0\0", 8));
  EXPECT_EQ(w.seen[1].bytes, "next");
}

TEST_P(PageLayouts, TimeExtendAdds59Bits) {
  const std::uint64_t delta = (123ull << 27) + 4567;
  const Walk w = walk_built(page().start(10).time_extend(delta).record(1, "aaaa"));
  EXPECT_EQ(w.seen, (std::vector<Seen>{{10 + delta + 1, "aaaa"}}));
}

TEST_P(PageLayouts, TimeStampReplacesAllButTheHighBits) {
  const std::uint64_t high = 0x18ull << 56;  // a clock since 1970, in ns
  const std::uint64_t stamp = (0x0123ull << 40) + 99;
  const Walk w = walk_built(
      page().start(high + 5).record(1, "aaaa").time_stamp(stamp).record(2, "bbbb"));
  EXPECT_EQ(w.seen, (std::vector<Seen>{{high + 6, "aaaa"}, {high + stamp + 2, "bbbb"}}));
}

TEST_P(PageLayouts, DiscardedRecordCountsItsTimeOnly) {
  const Walk w =
      walk_built(page().start(100).record(1, "aaaa").discarded(20, 16).record(3, "bbbb"));
  EXPECT_EQ(w.seen, (std::vector<Seen>{{101, "aaaa"}, {124, "bbbb"}}));
  EXPECT_EQ(w.counters.get(Counter::kDiscardedRecords), 1u);
  EXPECT_TRUE(w.result.complete);
}

TEST_P(PageLayouts, PaddingWithoutDeltaEndsThePage) {
  const Walk w = walk_built(page().record(1, "aaaa").header(29, 0).record(1, "bbbb"));
  EXPECT_EQ(w.seen.size(), 1u);
  EXPECT_TRUE(w.result.complete);
  EXPECT_EQ(w.counters.get(Counter::kDiscardedRecords), 0u);
}

TEST_P(PageLayouts, LostEventsWithTheirCount) {
  const Walk w = walk_built(page().record(1, "aaaa").lost(4711));
  ASSERT_TRUE(w.result.lost);
  EXPECT_EQ(w.result.lost->count, 4711u);
  EXPECT_EQ(w.seen.size(), 1u);
}

TEST_P(PageLayouts, LostEventsWithoutACount) {
  const Walk w = walk_built(page().record(1, "aaaa").lost(std::nullopt));
  ASSERT_TRUE(w.result.lost);
  EXPECT_EQ(w.result.lost->count, std::nullopt);
}

// The flag says that a count is stored, and the page has no room for one.
TEST_P(PageLayouts, LostCountBehindThePageIsNotRead) {
  PageBuilder full = page().lost(4711);
  const std::size_t header_bytes = 8 + GetParam().second;
  for (std::size_t at = header_bytes; at + 4 <= 512; at += 4) full.header(29, 0);
  const std::string cut = full.build().substr(0, 512);
  const Walk w = walk(cut, GetParam().first, GetParam().second);
  ASSERT_TRUE(w.result.lost);
  EXPECT_EQ(w.result.lost->count, std::nullopt);
}

TEST_P(PageLayouts, EmptyPageHasNoRecords) {
  const Walk w = walk_built(page().start(5));
  EXPECT_TRUE(w.result.is_page);
  EXPECT_TRUE(w.result.complete);
  EXPECT_TRUE(w.seen.empty());
}

TEST_P(PageLayouts, CommitLargerThanThePageIsNoPage) {
  const std::uint64_t room = 512 - 8 - GetParam().second;
  const Walk over = walk_built(page().record(1, "aaaa").claim(room + 1));
  EXPECT_FALSE(over.result.is_page);
  EXPECT_TRUE(over.seen.empty());
  EXPECT_TRUE(walk_built(page().record(1, "aaaa").header(29, 0).claim(room)).result.is_page);
}

TEST_P(PageLayouts, RecordOverTheEndIsTold) {
  // A record of 12 bytes where 4 are left.
  const Walk w = walk_built(page().record(1, "aaaa").header(3, 1).word(0));
  EXPECT_EQ(w.seen.size(), 1u);
  EXPECT_FALSE(w.result.complete);
  EXPECT_EQ(w.result.bad_offset, 8 + GetParam().second + 8);
}

TEST_P(PageLayouts, Type0OverTheEndIsTold) {
  for (const std::uint32_t length : {100u, 0xffffffffu, 0xfffffffdu}) {
    const Walk w = walk_built(page().header(0, 1).word(length).word(0));
    EXPECT_TRUE(w.seen.empty());
    EXPECT_FALSE(w.result.complete);
  }
}

// Neither may stop the walk from going on: no length of 0 to 3 is a step.
TEST_P(PageLayouts, ZeroLengthEndsTheWalk) {
  for (std::uint32_t length = 0; length < 4; ++length) {
    const Walk plain = walk_built(page().header(0, 1).word(length).record(1, "aaaa"));
    EXPECT_TRUE(plain.seen.empty());
    EXPECT_FALSE(plain.result.complete);
    const Walk padding = walk_built(page().header(29, 1).word(length).record(1, "aaaa"));
    EXPECT_TRUE(padding.seen.empty());
    EXPECT_FALSE(padding.result.complete);
  }
}

TEST_P(PageLayouts, DiscardedOverTheEndIsTold) {
  EXPECT_FALSE(walk_built(page().header(29, 1).word(400).word(0)).result.complete);
  EXPECT_FALSE(walk_built(page().header(29, 1).word(0xffffffff).word(0)).result.complete);
}

// A header word that is the last of the page.
TEST_P(PageLayouts, TypesThatNeedASecondWord) {
  for (const std::uint32_t type : {0u, 29u, 30u, 31u}) {
    const Walk w = walk_built(page().record(1, "aaaa").header(type, 9));
    EXPECT_EQ(w.seen.size(), 1u) << type;
    EXPECT_FALSE(w.result.complete) << type;
  }
}

TEST_P(PageLayouts, BytesBehindTheLastRecordAreTold) {
  const Walk w = walk_built(page().record(1, "aaaa").claim(8 + 3));
  EXPECT_EQ(w.seen.size(), 1u);
  EXPECT_FALSE(w.result.complete);
}

TEST_P(PageLayouts, PageShorterThanItsHeader) {
  const std::string whole = page().record(1, "aaaa").build();
  for (std::size_t bytes = 0; bytes < 8 + GetParam().second; ++bytes) {
    const Walk w = walk(whole.substr(0, bytes), GetParam().first, GetParam().second);
    EXPECT_FALSE(w.result.is_page) << bytes;
  }
}

// Above bit 27 the commit field holds flags, not length.
TEST(PageWalker, OtherFlagsOfCommitAreNoLength) {
  const std::uint64_t flags = (1ull << 29) | (1ull << 40);
  const Walk w = walk(PageBuilder().record(1, "aaaa").claim(8 | flags).build());
  EXPECT_TRUE(w.result.is_page);
  EXPECT_EQ(w.seen.size(), 1u);
}

}  // namespace
}  // namespace wbscope
