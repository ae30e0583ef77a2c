// SPDX-License-Identifier: Apache-2.0
// Shares of formats: what child processes hand over, and what becomes of bytes
// that are none of theirs; a catalog that several children read.
#include "format/format_share.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "support.h"
#include "trace_builder.h"

namespace wbscope {
namespace {

using testing::header_page_text;
using testing::kernel_format;

constexpr std::string_view kKernel = "7.2.13-x86_64";

TraceInfo info_of(std::vector<FormatText> formats) {
  TraceInfo info;
  info.long_bytes = 8;
  info.header_page = header_page_text(8);
  info.formats = std::move(formats);
  return info;
}

std::vector<FormatText> some_formats() {
  std::vector<FormatText> formats;
  for (const char* name : {"balance_dirty_pages", "global_dirty_state", "writeback_start"}) {
    formats.push_back({"writeback", kernel_format(kKernel, "writeback", name)});
  }
  formats.push_back({"test", "name: broken\nID: 9\nformat:\n\tfield nonsense\n"});
  return formats;
}

FormatShare read_all(const TraceInfo& info) {
  const std::vector<Trust> trust(info.formats.size() + 1, Trust::kWhole);
  return read_formats(info, trust, {}, [](std::uint32_t) {});
}

TEST(FormatShare, BytesSayAllThatWasRead) {
  const FormatShare share = read_all(info_of(some_formats()));
  ASSERT_EQ(share.plans.size(), 4u);
  const auto again = to_share(to_bytes(share), 4);
  ASSERT_TRUE(again);
  EXPECT_EQ(to_bytes(*again), to_bytes(share));
  EXPECT_EQ(again->page.data_offset, 16u);
  ASSERT_TRUE(again->common);
  EXPECT_EQ(again->common->format, 0u);
  EXPECT_EQ(again->common->fields.pid_offset, 4u);
  EXPECT_EQ(again->common->fields.flags_offset, 2u);
  ASSERT_EQ(again->plans.size(), 4u);
  const EventPlan& plan = again->plans[0].plan;
  EXPECT_EQ(plan.name, "balance_dirty_pages");
  EXPECT_EQ(plan.id, 962u);
  EXPECT_EQ(plan.min_bytes, 144u);
  ASSERT_EQ(plan.fields.size(), 15u);
  EXPECT_EQ(plan.fields[0].column, "bdi");
  EXPECT_EQ(plan.fields[0].kind, FieldKind::kText);
  EXPECT_EQ(plan.fields[0].type, share.plans[0].plan.fields[0].type);
  EXPECT_EQ(again->plans[2].format, 2u);
  ASSERT_FALSE(again->plans[2].plan.labels.empty());
  EXPECT_EQ(again->plans[2].plan.labels[0].label, share.plans[2].plan.labels[0].label);
  EXPECT_EQ(again->plans[3].plan.status, FormatStatus::kRaw);
}

TEST(FormatShare, BytesThatAreCutAreNone) {
  const std::string bytes = to_bytes(read_all(info_of(some_formats())));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(to_share(std::string_view(bytes).substr(0, n), 4)) << n;
  }
  EXPECT_FALSE(to_share(bytes + '\0', 4));
}

TEST(FormatShare, PlansOfOtherFormatsAreNone) {
  const std::string bytes = to_bytes(read_all(info_of(some_formats())));
  EXPECT_FALSE(to_share(bytes, 3));
}

// Whatever a misled process writes, no plan reads outside of its record.
TEST(FormatShare, NoBytesMakeAPlanReadOutsideOfItsRecord) {
  const std::string bytes = to_bytes(read_all(info_of(some_formats())));
  std::size_t accepted = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    for (const int mask : {0x01, 0x04, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ mask);
      const auto share = to_share(changed, 4);
      if (!share) continue;
      ++accepted;
      for (const auto& [format, plan] : share->plans) {
        ASSERT_LT(format, 4u);
        for (const auto& field : plan.fields) {
          ASSERT_LE(std::uint64_t{field.offset} + field.bytes, plan.min_bytes) << n;
          ASSERT_LE(field.kind, FieldKind::kPrintk);
        }
      }
    }
  }
  EXPECT_GT(accepted, 0u);  // a letter of a name, say
}

// So many that they are read by as many children as there are processors.
TEST(FormatShare, ManyFormatsAreThoseOfEachAlone) {
  std::vector<FormatText> formats;
  for (int i = 0; i < 400; ++i) {
    for (FormatText format : some_formats()) {
      format.system += std::to_string(i);
      formats.push_back(std::move(format));
    }
  }
  // One that makes libtraceevent die, in the last share.
  std::string deep = formats[1598].text;
  const std::string_view print = "print fmt: ";
  ASSERT_NE(deep.find(print), std::string::npos);
  deep.insert(deep.find(print) + print.size(), "\"%d\", " + std::string(200'000, '('));
  formats[1598].text = deep;
  const TraceInfo info = info_of(formats);
  const EventCatalog catalog = build_event_catalog(info);
  ASSERT_EQ(catalog.events.size(), formats.size() + 1);
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const EventPlan& plan = catalog.events[i];
    EXPECT_EQ(plan.system, formats[i].system);
    EXPECT_EQ(plan.text, formats[i].text);
    const EventPlan& same = catalog.events[i % 4];
    EXPECT_EQ(plan.name, same.name);
    EXPECT_EQ(plan.fields.size(), same.fields.size());
    EXPECT_EQ(plan.min_bytes, same.min_bytes);
    if (i == 1598) {
      EXPECT_EQ(plan.status, FormatStatus::kPartial);
    } else {
      EXPECT_EQ(plan.status, same.status);
      EXPECT_EQ(plan.labels.size(), same.labels.size());
    }
  }
}

TEST(ChildWork, BytesThatNoPipeHoldsAreHandedOver) {
  CpuBudget budget(5);
  const auto many = [](char letter) {
    return [letter](const Announce& announce) {
      announce(1);
      return std::string(std::size_t{3} << 20, letter);
    };
  };
  ChildWork a(many('a'), budget);
  ChildWork b(many('b'), budget);
  const ChildResult first = a.finish(budget);
  const ChildResult second = b.finish(budget);
  EXPECT_FALSE(first.died_in);
  EXPECT_FALSE(second.died_in);
  EXPECT_EQ(first.bytes, std::string(std::size_t{3} << 20, 'a'));
  EXPECT_EQ(second.bytes, std::string(std::size_t{3} << 20, 'b'));
}

TEST(ChildWork, DeathIsToldWithItsStep) {
  CpuBudget budget(5);
  const auto dies = [](const Announce& announce) -> std::string {
    announce(3);
    announce(8);
    ::_exit(1);
  };
  const auto throws = [](const Announce& announce) -> std::string {
    announce(4);
    throw std::runtime_error("of the work");
  };
  EXPECT_EQ(ChildWork(dies, budget).finish(budget).died_in, 8u);
  EXPECT_EQ(ChildWork(throws, budget).finish(budget).died_in, 4u);
  // One that nobody waits for ends with its owner.
  { const ChildWork unwanted([](const Announce&) { return std::string(); }, budget); }
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace wbscope
