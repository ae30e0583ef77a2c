// SPDX-License-Identifier: Apache-2.0
// EventWriter: what becomes of each kind of field in its table, in both byte
// orders, and of fields that point outside their record.
#include "sink/event_writer.h"

#include <gtest/gtest.h>

#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;

constexpr std::uint32_t kAt = 8;  // the first byte behind the common fields

FieldPlan field(FieldKind kind, std::uint32_t bytes, bool is_signed = false,
                std::uint32_t element_bytes = 1) {
  FieldPlan plan;
  plan.name = plan.column = "x";
  plan.kind = kind;
  plan.offset = kAt;
  plan.bytes = bytes;
  plan.element_bytes = element_bytes;
  plan.is_signed = is_signed;
  return plan;
}

// One event with one field x; each write is a row.
class Table {
 public:
  explicit Table(const FieldPlan& plan, ByteOrder order = ByteOrder::kLittle,
                 const PreviousChoice& previous = {})
      : order_(order), db_(":memory:", "test", Database::Mode::kCreate) {
    EventPlan event;
    event.system = "test";
    event.name = "one";
    event.table = "ev_one";
    event.fields.push_back(plan);
    event.min_bytes = plan.offset + plan.bytes;
    catalog_.events.push_back(event);
    writer_.emplace(db_, catalog_, std::vector<bool>{true}, order, PrintkFormats(), previous);
  }

  // Writes a record with these bytes behind the common fields.
  void write(const Bytes& body) {
    write_pending(body);
    writer_->finish();
  }
  // The same, left to the next batch.
  void write_pending(const Bytes& body) {
    const Bytes record = Bytes(order_).pad_to(kAt).text(body.str());
    write_record(record.span());
  }
  void write_record(std::span<const std::byte> record) {
    writer_->write(0, 1000 + rows_, 3, 11, 0, record);
    ++rows_;
  }
  void finish() { writer_->finish(); }
  [[nodiscard]] Bytes bytes() const { return Bytes(order_); }

  // x of the last row, as SQLite's quote() prints it.
  [[nodiscard]] std::string last() { return text("SELECT quote(x) FROM ev_one ORDER BY seq DESC"); }
  [[nodiscard]] std::string text(const std::string& sql) {
    Statement rows(db_, sql);
    if (!rows.step()) return "no row";
    return std::string(rows.text(0));
  }
  [[nodiscard]] std::uint64_t count(Counter counter) const {
    return writer_->counters().get(counter);
  }
  [[nodiscard]] std::uint64_t loaded() const { return writer_->loaded()[0]; }

 private:
  ByteOrder order_;
  Database db_;
  EventCatalog catalog_;
  std::optional<EventWriter> writer_;
  std::int64_t rows_ = 0;
};

class EventWriterOrders : public ::testing::TestWithParam<ByteOrder> {};
INSTANTIATE_TEST_SUITE_P(Orders, EventWriterOrders,
                         ::testing::Values(ByteOrder::kLittle, ByteOrder::kBig));

TEST_P(EventWriterOrders, SignedIntegersOfEachWidth) {
  for (const unsigned bytes : {1u, 2u, 4u, 8u}) {
    Table table(field(FieldKind::kInteger, bytes, true), GetParam());
    table.write(table.bytes().integer(static_cast<std::uint64_t>(-5), bytes));
    EXPECT_EQ(table.last(), "-5") << bytes;
    table.write(table.bytes().integer(100, bytes));
    EXPECT_EQ(table.last(), "100") << bytes;
  }
}

TEST_P(EventWriterOrders, UnsignedIntegersOfEachWidth) {
  const std::pair<unsigned, const char*> largest[] = {
      {1u, "255"}, {2u, "65535"}, {4u, "4294967295"}, {8u, "-1"}};  // SQLite has no u64
  for (const auto& [bytes, value] : largest) {
    Table table(field(FieldKind::kInteger, bytes), GetParam());
    table.write(table.bytes().integer(~0ull, bytes));
    EXPECT_EQ(table.last(), value);
  }
}

TEST_P(EventWriterOrders, Arrays) {
  Table shorts(field(FieldKind::kArray, 6, true, 2), GetParam());
  shorts.write(shorts.bytes().u16(1).u16(0xffff).u16(0x8000));
  EXPECT_EQ(shorts.last(), "'[1,-1,-32768]'");
  Table longs(field(FieldKind::kArray, 16, false, 8), GetParam());
  longs.write(longs.bytes().u64(7).u64(~0ull));
  EXPECT_EQ(longs.last(), "'[7,18446744073709551615]'");  // here nothing is lost
}

TEST_P(EventWriterOrders, DynamicTextAndArrays) {
  Table text(field(FieldKind::kDynText, 4), GetParam());
  text.write(text.bytes().u32((5u << 16) | 12).cstring("8:16"));
  EXPECT_EQ(text.last(), "'8:16'");
  Table array(field(FieldKind::kDynArray, 4, true, 4), GetParam());
  array.write(array.bytes().u32((8u << 16) | 12).u32(3).u32(0xfffffffe));
  EXPECT_EQ(array.last(), "'[3,-2]'");
}

// __rel_loc counts from the end of the field.
TEST_P(EventWriterOrders, RelativeTextAndArrays) {
  Table text(field(FieldKind::kRelText, 4), GetParam());
  text.write(text.bytes().u32((3u << 16) | 2).text("..dd").u8(0));
  EXPECT_EQ(text.last(), "'dd'");
  Table array(field(FieldKind::kRelArray, 4, false, 2), GetParam());
  array.write(array.bytes().u32((4u << 16) | 0).u16(1).u16(2));
  EXPECT_EQ(array.last(), "'[1,2]'");
}

TEST(EventWriter, TextEndsAtItsNulOrItsSize) {
  Table table(field(FieldKind::kText, 4));
  table.write(table.bytes().text(std::string_view("a\0zz", 4)));
  EXPECT_EQ(table.last(), "'a'");
  table.write(table.bytes().text("full").text("behind"));
  EXPECT_EQ(table.last(), "'full'");
  table.write(table.bytes().u32(0));
  EXPECT_EQ(table.last(), "''");
}

TEST(EventWriter, RestTextReachesToTheEndOfTheRecord) {
  Table table(field(FieldKind::kRestText, 0));
  table.write(table.bytes().text("to the end"));
  EXPECT_EQ(table.last(), "'to the end'");
  table.write(table.bytes());
  EXPECT_EQ(table.last(), "''");
}

TEST(EventWriter, OtherBytesAreABlob) {
  Table sized(field(FieldKind::kBytes, 3));
  sized.write(sized.bytes().u8(1).u8(0).u8(0xff).u8(9));
  EXPECT_EQ(sized.last(), "X'0100FF'");
  Table rest(field(FieldKind::kBytes, 0));  // payload of an unparsed format
  rest.write(rest.bytes().u8(1).u8(2));
  EXPECT_EQ(rest.last(), "X'0102'");
  rest.write(rest.bytes());
  EXPECT_EQ(rest.last(), "X''");
}

TEST(EventWriter, ArrayOfOddElementsIsABlob) {
  Table table(field(FieldKind::kDynBytes, 4, false, 1));
  table.write(table.bytes().u32((2u << 16) | 12).u8(0xaa).u8(0xbb));
  EXPECT_EQ(table.last(), "X'AABB'");
}

TEST(EventWriter, DynamicFieldsOutOfBoundsAreNull) {
  for (const FieldKind kind : {FieldKind::kDynText, FieldKind::kRelText, FieldKind::kDynArray,
                               FieldKind::kRelArray}) {
    Table table(field(kind, 4, false, 2));
    const std::uint32_t end = kind == FieldKind::kDynText || kind == FieldKind::kDynArray ? 16 : 4;
    const auto location = [&](std::uint32_t at, std::uint32_t bytes) {
      table.write(table.bytes().u32((bytes << 16) | at).text("abc").u8(0));
      return table.last();
    };
    EXPECT_NE(location(end - 4, 4), "NULL");
    EXPECT_NE(location(end, 0), "NULL");  // empty, right at the end
    EXPECT_EQ(table.count(Counter::kBadDynamicFields), 0u);
    EXPECT_EQ(location(end - 4, 5), "NULL");
    EXPECT_EQ(location(end + 1, 0), "NULL");
    EXPECT_EQ(location(0xffff, 0xffff), "NULL");
    EXPECT_EQ(table.count(Counter::kBadDynamicFields), 3u);
    EXPECT_EQ(table.loaded(), 5u);  // the rows are there all the same
  }
}

TEST(EventWriter, BytesThatAreNotUtf8AreReplacedAndCounted) {
  Table table(field(FieldKind::kText, 4));
  table.write(table.bytes().text("a\xff" "bc"));
  EXPECT_EQ(table.last(), "'a\xef\xbf\xbd" "bc'");
  EXPECT_EQ(table.count(Counter::kReplacedText), 1u);
  table.write(table.bytes().text("\xc3\xbc" "ok"));
  EXPECT_EQ(table.last(), "'\xc3\xbcok'");
  EXPECT_EQ(table.count(Counter::kReplacedText), 1u);
}

// A batch is 32 rows: 71 are two of them and a rest.
TEST(EventWriter, BatchesKeepEveryRowInOrder) {
  Table table(field(FieldKind::kText, 4));
  for (int i = 0; i < 71; ++i) {
    table.write_pending(table.bytes().text(std::to_string(100 + i) + "z"));
  }
  table.finish();
  EXPECT_EQ(table.loaded(), 71u);
  EXPECT_EQ(table.text("SELECT count(*) || ' ' || sum(seq) FROM ev_one"), "71 2556");
  EXPECT_EQ(table.text("SELECT count(*) FROM ev_one"
                       " WHERE x = (99 + seq) || 'z' AND ts = 999 + seq"),
            "71");
}

TEST(EventWriter, LeadingColumns) {
  Table table(field(FieldKind::kInteger, 4));
  table.write(table.bytes().u32(1));
  table.write(table.bytes().u32(2));
  EXPECT_EQ(table.text("SELECT group_concat(seq || ' ' || ts || ' ' || cpu || ' ' || tid || ' ' "
                       "|| buffer || ' ' || x, ';') FROM ev_one"),
            "1 1000 3 11 0 1;2 1001 3 11 0 2");
  EXPECT_EQ(table.loaded(), 2u);
}

// What a record is too short for, it does not say, whatever lies behind it.
TEST(EventWriter, ShortRecordsRepeatWhatTheyHave) {
  PreviousChoice previous;
  previous.add("test:one", PreviousOf::kAny);
  previous.add_repeats("test:one", {"x"});
  Table table(field(FieldKind::kInteger, 4), ByteOrder::kLittle, previous);
  char behind = 'a';
  for (const std::size_t bytes : {12, 12, 10, 10, 8, 8, 4, 4}) {
    const Bytes record =
        Bytes(ByteOrder::kLittle).pad_to(bytes).text(std::string(8, behind++));
    table.write_record(record.span().first(bytes));
  }
  table.finish();
  EXPECT_EQ(table.text("SELECT group_concat(repeats_count, ' ') FROM"
                       " (SELECT repeats_count FROM ev_one ORDER BY seq)"),
            "0 1 0 1 0 1 2 3");
}

// Rows are written in batches; none is lost or mixed up at their borders.
TEST(EventWriter, AnyCountOfRowsIsWritten) {
  for (const int count : {0, 1, 31, 32, 33, 64, 100}) {
    Table table(field(FieldKind::kDynText, 4));
    std::string wanted;
    for (int i = 0; i < count; ++i) {
      const std::string name = "8:" + std::to_string(i) + (i % 3 == 0 ? "\xff" : "");
      const auto size = static_cast<std::uint32_t>(name.size());
      table.write_pending(table.bytes().u32((size << 16) | 12).text(name));
      wanted += (i == 0 ? "" : ",") + std::to_string(i + 1) + " 8:" + std::to_string(i) +
                (i % 3 == 0 ? "\xef\xbf\xbd" : "");
    }
    table.finish();
    EXPECT_EQ(table.text("SELECT coalesce(group_concat(seq || ' ' || x), '') FROM ev_one"), wanted);
    EXPECT_EQ(table.loaded(), static_cast<std::uint64_t>(count));
  }
}

TEST(EventWriter, OnlyWantedEventsHaveATable) {
  Database db(":memory:", "test", Database::Mode::kCreate);
  EventCatalog catalog;
  for (const char* name : {"ev_a", "ev_b"}) {
    EventPlan event;
    event.table = name;
    catalog.events.push_back(event);
  }
  const EventWriter writer(db, catalog, {false, true}, ByteOrder::kLittle);
  Statement rows(db, "SELECT group_concat(name) FROM sqlite_schema WHERE name GLOB 'ev_*'");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.text(0), "ev_b");
}

}  // namespace
}  // namespace wbscope
