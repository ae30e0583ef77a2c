// SPDX-License-Identifier: Apache-2.0
// EventCatalog: kinds and signs of fields, names of tables and columns, and
// labels, from the format texts of real kernels and from hostile ones.
#include "format/event_catalog.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"
#include "trace_builder.h"

namespace wbscope {
namespace {

using testing::header_page_text;
using testing::kernel_format;

EventCatalog catalog_of(std::vector<FormatText> formats, std::uint32_t long_bytes = 8) {
  TraceInfo info;
  info.long_bytes = long_bytes;
  info.header_page = header_page_text(long_bytes);
  info.formats = std::move(formats);
  return build_event_catalog(info);
}

EventPlan plan_of(const std::string& text, std::uint32_t long_bytes = 8) {
  const EventCatalog catalog = catalog_of({{"test", text}}, long_bytes);
  EXPECT_EQ(catalog.events.size(), 2u);  // with that of unknown records
  return catalog.events.empty() ? EventPlan{} : catalog.events[0];
}

// A format with these field lines and this print format.
std::string format_text(const std::string& name, int id, const std::string& fields,
                        const std::string& print = "\"\"") {
  return "name: " + name + "\nID: " + std::to_string(id) +
         "\nformat:\n"
         "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
         "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
         "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
         "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
         fields + "\nprint fmt: " + print + "\n";
}

const FieldPlan& field_of(const EventPlan& plan, std::string_view name) {
  static const FieldPlan kNone{};
  const auto found = std::find_if(plan.fields.begin(), plan.fields.end(),
                                  [name](const FieldPlan& f) { return f.name == name; });
  EXPECT_NE(found, plan.fields.end()) << name;
  return found == plan.fields.end() ? kNone : *found;
}

TEST(EventCatalog, ProbesOfARecordingHaveTheNamesOfEveryRun) {
  const auto fields = "\tfield:u64 pages;\toffset:8;\tsize:8;\tsigned:0;\n";
  const auto text = [&](int id) { return format_text("entry", id, fields); };
  const EventCatalog catalog = catalog_of({{"wbscope_12_0123abcd", text(1)},
                                           {"wbscope_345_0123abcd", text(2)},
                                           {"wbscope_mine_0123abcd", text(3)},
                                           {"wbscope_12_0123abc", text(4)},
                                           {"wbscope_12_0123abcd_", text(5)},
                                           {"wbscope_12", text(6)},
                                           {"xwbscope_12_0123abcd", text(7)}});
  ASSERT_EQ(catalog.events.size(), 8u);
  EXPECT_EQ(catalog_of({{"wbscope_7_remote", text(1)}}).events[0].full_name(), "wbscope:entry");
  EXPECT_EQ(catalog.events[0].full_name(), "wbscope:entry");
  EXPECT_EQ(catalog.events[0].table, "ev_entry");
  // Two at a time in one trace: both are there.
  EXPECT_EQ(catalog.events[1].full_name(), "wbscope_345_0123abcd:entry");
  EXPECT_EQ(catalog.events[1].table, "ev_wbscope_345_0123abcd__entry");
  EXPECT_EQ(catalog.events[2].system, "wbscope_mine_0123abcd");
  EXPECT_EQ(catalog.events[3].system, "wbscope_12_0123abc");
  EXPECT_EQ(catalog.events[4].system, "wbscope_12_0123abcd_");
  EXPECT_EQ(catalog.events[5].system, "wbscope_12");
  EXPECT_EQ(catalog.events[6].system, "xwbscope_12_0123abcd");
}

TEST(EventCatalog, SyntheticEventsOfARecordingHaveTheNamesOfEveryRun) {
  const auto fields = "\tfield:u64 blocked_ns;\toffset:8;\tsize:8;\tsigned:0;\n";
  const auto name_of = [&](const std::string& name) {
    return catalog_of({{"synthetic", format_text(name, 1, fields)}}).events[0].full_name();
  };
  EXPECT_EQ(name_of("wbscope_12_0123abcd_blocked"), "wbscope:blocked");
  EXPECT_EQ(name_of("wbscope_12_0123abcd_a_b"), "wbscope:a_b");
  for (const std::string other : {"wbscope_12_blocked", "wbscope_x_0123abcd_blocked", "blocked"}) {
    EXPECT_EQ(name_of(other), "synthetic:" + other);
  }
}

TEST(EventCatalog, OnlyEventsThatAreAskedForHaveTheirFlags) {
  const auto fields = "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n";
  EventCatalog catalog = catalog_of(
      {{"sched", format_text("sched_waking", 1, fields)}, {"sched", format_text("other", 2, fields)}});
  add_flags({"sched:sched_waking", "sched:none"}, catalog);
  ASSERT_EQ(catalog.events[0].fields.size(), 2u);
  const FieldPlan& flags = field_of(catalog.events[0], "common_flags");
  EXPECT_EQ(flags.offset, 2u);
  EXPECT_EQ(flags.bytes, 1u);
  EXPECT_EQ(catalog.events[1].fields.size(), 1u);
}

TEST(EventCatalog, BalanceDirtyPagesOfANewKernel) {
  const EventPlan plan =
      plan_of(kernel_format("7.2.13-x86_64", "writeback", "balance_dirty_pages"));
  EXPECT_EQ(plan.status, FormatStatus::kParsed);
  EXPECT_EQ(plan.name, "balance_dirty_pages");
  EXPECT_EQ(plan.table, "ev_balance_dirty_pages");
  EXPECT_EQ(plan.id, 962u);
  EXPECT_EQ(plan.fields.size(), 15u);
  EXPECT_EQ(plan.min_bytes, 144u);
  EXPECT_EQ(field_of(plan, "bdi").kind, FieldKind::kText);
  EXPECT_EQ(field_of(plan, "bdi").bytes, 32u);
  EXPECT_EQ(field_of(plan, "pause").kind, FieldKind::kInteger);
  EXPECT_TRUE(field_of(plan, "pause").is_signed);
  EXPECT_FALSE(field_of(plan, "paused").is_signed);
  EXPECT_EQ(field_of(plan, "dirtied").bytes, 4u);
  EXPECT_EQ(field_of(plan, "dirtied").offset, 136u);
  EXPECT_EQ(field_of(plan, "limit").type, "unsigned long");
}

TEST(EventCatalog, BalanceDirtyPagesOfA32BitKernel) {
  const EventPlan plan =
      plan_of(kernel_format("3.10.49-arm32", "writeback", "balance_dirty_pages"), 4);
  EXPECT_EQ(plan.status, FormatStatus::kParsed);
  EXPECT_EQ(field_of(plan, "bdi_setpoint").bytes, 4u);
  EXPECT_TRUE(field_of(plan, "think").is_signed);
  EXPECT_EQ(plan.min_bytes, 92u);
}

TEST(EventCatalog, PageLayoutComesFromTheHeaderPage) {
  EXPECT_EQ(catalog_of({}, 8).page.data_offset, 16u);
  EXPECT_EQ(catalog_of({}, 4).page.commit_bytes, 4u);
  EXPECT_EQ(catalog_of({}, 4).page.data_offset, 12u);
  TraceInfo mixed;  // 32-bit programs on a 64-bit kernel
  mixed.long_bytes = 4;
  mixed.header_page = header_page_text(8);
  EXPECT_EQ(build_event_catalog(mixed).page.commit_bytes, 8u);
  mixed.header_page = "no format at all";
  EXPECT_EQ(build_event_catalog(mixed).page.commit_bytes, 4u);
}

TEST(EventCatalog, CommonFieldsOfAnOldKernel) {
  const EventCatalog catalog = catalog_of(
      {{"vmscan", kernel_format("3.4.0-arm32", "vmscan", "mm_vmscan_direct_reclaim_begin")}}, 4);
  EXPECT_EQ(catalog.common.type_offset, 0u);
  EXPECT_EQ(catalog.common.type_bytes, 2u);
  EXPECT_EQ(catalog.common.pid_offset, 4u);
  EXPECT_EQ(catalog.common.end, 8u);
  EXPECT_EQ(catalog.common.payload, 12u);
  EXPECT_EQ(field_of(catalog.events[0], "order").offset, 12u);  // behind common_padding
}

TEST(EventCatalog, DynamicTextAndLabelsOfRealFormats) {
  const EventPlan exec = plan_of(kernel_format("4.4.88-arm64", "sched", "sched_process_exec"));
  EXPECT_EQ(field_of(exec, "filename").kind, FieldKind::kDynText);
  const EventPlan start = plan_of(kernel_format("7.2.13-x86_64", "writeback", "writeback_start"));
  ASSERT_EQ(start.labels.size(), 8u);
  EXPECT_EQ(start.labels[1].field, "reason");
  EXPECT_EQ(start.labels[1].value, 1);
  EXPECT_EQ(start.labels[1].label, "vmscan");
  EXPECT_FALSE(start.labels[1].is_flag);
}

TEST(EventCatalog, FlagsAreLabelsToo) {
  const EventPlan plan = plan_of(kernel_format("4.4.88-arm64", "sched", "sched_switch"));
  const auto found = std::find_if(plan.labels.begin(), plan.labels.end(),
                                  [](const EnumLabel& l) { return l.label == "D"; });
  ASSERT_NE(found, plan.labels.end());
  EXPECT_EQ(found->field, "prev_state");
  EXPECT_EQ(found->value, 2);
  EXPECT_TRUE(found->is_flag);
}

TEST(EventCatalog, FlagsThatTheKernelLeavesUnresolved) {
  const EventPlan plan = plan_of(kernel_format("6.1.192-x86_64", "vmscan", "mm_vmscan_throttled"));
  ASSERT_EQ(plan.labels.size(), 4u);
  EXPECT_EQ(plan.labels[2].label, "VMSCAN_THROTTLE_NOPROGRESS");
  for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(plan.labels[n].value, 1 << n);
}

TEST(EventCatalog, KindsOfFields) {
  const EventPlan plan = plan_of(format_text(
      "kinds", 1,
      "\tfield:s8 tiny;\toffset:8;\tsize:1;\tsigned:1;\n"
      "\tfield:__data_loc char[] text;\toffset:12;\tsize:4;\tsigned:1;\n"
      "\tfield:__rel_loc char[] near;\toffset:16;\tsize:4;\tsigned:1;\n"
      "\tfield:__data_loc u32[] many;\toffset:20;\tsize:4;\tsigned:1;\n"
      "\tfield:unsigned long args[3];\toffset:24;\tsize:24;\tsigned:0;\n"
      "\tfield:unsigned char mac[6];\toffset:48;\tsize:6;\tsigned:0;\n"
      "\tfield:struct thing odd;\toffset:56;\tsize:12;\tsigned:0;\n"
      "\tfield:char rest[];\toffset:68;\tsize:0;\tsigned:0;\n"));
  EXPECT_EQ(plan.status, FormatStatus::kParsed);
  EXPECT_EQ(field_of(plan, "tiny").kind, FieldKind::kInteger);
  EXPECT_TRUE(field_of(plan, "tiny").is_signed);
  EXPECT_EQ(field_of(plan, "text").kind, FieldKind::kDynText);
  EXPECT_EQ(field_of(plan, "near").kind, FieldKind::kRelText);
  EXPECT_EQ(field_of(plan, "many").kind, FieldKind::kDynArray);
  EXPECT_EQ(field_of(plan, "many").element_bytes, 4u);
  EXPECT_EQ(field_of(plan, "args").kind, FieldKind::kArray);
  EXPECT_EQ(field_of(plan, "args").element_bytes, 8u);
  EXPECT_EQ(field_of(plan, "mac").kind, FieldKind::kBytes);
  EXPECT_EQ(field_of(plan, "odd").kind, FieldKind::kBytes);
  EXPECT_EQ(field_of(plan, "rest").kind, FieldKind::kRestText);
  EXPECT_EQ(plan.min_bytes, 68u);
}

TEST(EventCatalog, TablesOfOneName) {
  const std::string field = "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n";
  const EventCatalog catalog = catalog_of({{"one", format_text("same", 1, field)},
                                           {"two", format_text("same", 2, field)},
                                           {"Two", format_text("SAME", 3, field)},
                                           {"one", format_text("same", 4, field)}});
  ASSERT_EQ(catalog.events.size(), 4u);  // with that of unknown records; one:same of id 4 is the first again
  EXPECT_EQ(catalog.events[0].table, "ev_same");
  EXPECT_EQ(catalog.events[1].table, "ev_two__same");
  EXPECT_EQ(catalog.events[2].table, "ev_Two__SAME_2");  // SQLite does not see case
}

TEST(EventCatalog, ColumnsThatEveryTableHas) {
  const EventPlan plan = plan_of(format_text("columns", 1,
                                             "\tfield:int ts;\toffset:8;\tsize:4;\tsigned:1;\n"
                                             "\tfield:int CPU;\toffset:12;\tsize:4;\tsigned:1;\n"
                                             "\tfield:int seq;\toffset:16;\tsize:4;\tsigned:1;\n"
                                             "\tfield:int Tid;\toffset:20;\tsize:4;\tsigned:1;\n"));
  EXPECT_EQ(field_of(plan, "ts").column, "field_ts");
  EXPECT_EQ(field_of(plan, "CPU").column, "field_CPU");
  EXPECT_EQ(field_of(plan, "seq").column, "field_seq");
  EXPECT_EQ(field_of(plan, "Tid").column, "field_Tid");
}

TEST(EventCatalog, NamesFromAFileAreIdentifiers) {
  const EventPlan plan = plan_of(format_text("x\"; DROP TABLE meta; --", 1, ""));
  EXPECT_TRUE(std::all_of(plan.table.begin(), plan.table.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  })) << plan.table;
}

// libtraceevent knows no function __new_magic; the fields are still good.
TEST(EventCatalog, PrintFormatThatDoesNotParseKeepsTheFields) {
  const EventPlan plan = plan_of(format_text(
      "half", 5, "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n", "\"%d\", __new_magic(REC->x"));
  EXPECT_EQ(plan.status, FormatStatus::kPartial);
  EXPECT_EQ(field_of(plan, "x").offset, 8u);
}

TEST(EventCatalog, FieldsThatEndInTheMiddleAreRaw) {
  const EventPlan plan = plan_of(format_text("cut", 4,
                                             "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n"
                                             "\tfield:int y;\toffset:12;\tsi\n"));
  EXPECT_EQ(plan.status, FormatStatus::kRaw);
  EXPECT_EQ(plan.fields.back().column, "payload");
}

TEST(EventCatalog, FormatThatDoesNotParseIsRaw) {
  const EventPlan plan = plan_of("name: broken\nID: 9\nformat:\n\tfield nonsense\n");
  EXPECT_EQ(plan.status, FormatStatus::kRaw);
  EXPECT_EQ(plan.name, "broken");
  EXPECT_EQ(plan.id, 9u);
  EXPECT_EQ(plan.table, "ev_broken");
  ASSERT_EQ(plan.fields.size(), 3u);
  EXPECT_EQ(plan.fields[0].column, "common_flags");
  EXPECT_EQ(plan.fields[0].offset, 2u);
  EXPECT_EQ(plan.fields[1].column, "common_preempt_count");
  EXPECT_EQ(plan.fields[1].offset, 3u);
  EXPECT_EQ(plan.fields[2].column, "payload");
  EXPECT_EQ(plan.fields[2].kind, FieldKind::kBytes);
  EXPECT_EQ(plan.fields[2].offset, 8u);
  EXPECT_EQ(plan.min_bytes, 8u);
}

TEST(EventCatalog, FieldsOutOfAllBoundsAreRaw) {
  EXPECT_EQ(plan_of(format_text("far", 1, "\tfield:int x;\toffset:99999;\tsize:4;\tsigned:1;\n"))
                .status,
            FormatStatus::kRaw);
  EXPECT_EQ(
      plan_of(format_text("big", 1, "\tfield:char x[9];\toffset:8;\tsize:99999;\tsigned:1;\n"))
          .status,
      FormatStatus::kRaw);
}

TEST(EventCatalog, FieldsOnTheSameBytesAreRaw) {
  const auto status_of = [](int fields, int bytes, const char* more = "") {
    std::string text;
    for (int i = 0; i < fields; ++i) {
      text += "\tfield:char f" + std::to_string(i) + "[" + std::to_string(bytes) +
              "];\toffset:8;\tsize:" + std::to_string(bytes) + ";\tsigned:0;\n";
    }
    return plan_of(format_text("many", 1, text + more)).status;
  };
  EXPECT_EQ(status_of(500, 4000), FormatStatus::kRaw);
  EXPECT_EQ(status_of(4, 100), FormatStatus::kRaw);
  EXPECT_EQ(status_of(2, 100), FormatStatus::kParsed);
  // They reach to the end of the record, however long that is.
  EXPECT_EQ(status_of(5, 0), FormatStatus::kRaw);
  EXPECT_EQ(status_of(1, 0), FormatStatus::kParsed);
  // What is within another field of a long record is not much.
  EXPECT_EQ(status_of(4, 100, "\tfield:char g[900];\toffset:8;\tsize:900;\tsigned:0;\n"),
            FormatStatus::kParsed);
}

TEST(EventCatalog, FormatWithoutNameOrIdIsLeftOut) {
  for (const char* text : {"", "name: x\n", "ID: 3\n", "name: x\nID: three\n"}) {
    EXPECT_FALSE(catalog_of({{"test", text}}).has_formats()) << text;
  }
  EXPECT_FALSE(catalog_of({{"test", format_text("huge", 70000, "")}}).has_formats());
}

// The print format is a stranger's: nesting must not use up the stack.
TEST(EventCatalog, DeepNestingIsNoCrash) {
  for (const char* open : {"(", "1 ? "}) {
    std::string print = "\"%d\", ";
    for (int i = 0; i < 200'000; ++i) print += open;
    const EventPlan plan =
        plan_of(format_text("deep", 6, "\tfield:int x;\toffset:8;\tsize:4;\tsigned:1;\n", print));
    EXPECT_EQ(field_of(plan, "x").offset, 8u) << open;
  }
}

}  // namespace
}  // namespace wbscope
