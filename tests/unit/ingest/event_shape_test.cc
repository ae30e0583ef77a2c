// SPDX-License-Identifier: Apache-2.0
// Which events go out in Perfetto's own messages, and what their records become.
#include "perfetto/event_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include "perfetto/event_encoder.h"
#include "perfetto/known_events.h"
#include "perfetto/protos.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;

constexpr std::uint32_t kAt = 8;  // the first byte behind the common fields

// An event of 32-bit numbers, one behind the other; "comm" fields are text.
EventPlan plan_of(const std::string& name, const std::vector<std::string>& fields) {
  EventPlan plan;
  plan.system = "test";
  plan.name = name;
  std::uint32_t at = kAt;
  for (const auto& field : fields) {
    const bool text = field.ends_with("comm") || field == "buf";
    plan.fields.push_back({.name = field,
                           .column = field,
                           .type = text ? "char" : "int",
                           .kind = text ? FieldKind::kText : FieldKind::kInteger,
                           .offset = at,
                           .bytes = text ? 16u : 4u,
                           .is_signed = true});
    at = plan.fields.back().end();
  }
  plan.min_bytes = at;
  return plan;
}

EventShapes shape(const EventPlan& plan, const ShapeOptions& options = {}) {
  EventCatalog catalog;
  catalog.events.push_back(plan);
  std::uint32_t next = protos::event::kFirstGeneric;
  return shape_events(catalog, options, next).front();
}

using Form = EventShape::Form;

TEST(KnownEvents, HaveTheirNumbersAndFields) {
  const auto event = find_known_event("sched_waking");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->number, 20u);
  EXPECT_TRUE(event->fills_tables);
  ASSERT_NE(event->field("target_cpu"), nullptr);
  EXPECT_EQ(event->field("target_cpu")->number, 5u);
  EXPECT_EQ(event->field("no_such"), nullptr);
  EXPECT_FALSE(find_known_event("no_such_event"));
}

TEST(EventShape, OwnMessageWhenEveryFieldHasAPlace) {
  const auto shapes = shape(plan_of("sched_wakeup", {"comm", "pid", "prio", "target_cpu"}));
  EXPECT_EQ(shapes.usual.form, Form::kOwn);
  EXPECT_TRUE(shapes.usual.left_out.empty());
  EXPECT_EQ(shapes.when, OtherShape::kNever);
}

TEST(EventShape, GenericWhenAFieldHasNone) {
  const auto shapes = shape(plan_of("sched_wakeup", {"comm", "pid", "prio", "surprise"}));
  EXPECT_EQ(shapes.usual.form, Form::kGeneric);
  EXPECT_EQ(shapes.usual.fields.size(), 4u);
}

TEST(EventShape, GenericWhenATypeDoesNotFit) {
  auto plan = plan_of("sched_wakeup", {"comm", "pid", "prio", "target_cpu"});
  plan.fields[1].kind = FieldKind::kText;
  EXPECT_EQ(shape(plan).usual.form, Form::kGeneric);
}

TEST(EventShape, WhatFillsTablesKeepsItsMessage) {
  const auto shapes = shape(plan_of("sched_waking", {"comm", "pid", "prio", "target_cpu", "more"}));
  EXPECT_EQ(shapes.usual.form, Form::kOwn);
  EXPECT_EQ(shapes.usual.left_out, std::vector<std::string>{"more"});
}

TEST(EventShape, ButNotWithoutWhatTheTablesNeed) {
  EXPECT_EQ(shape(plan_of("sched_waking", {"comm", "prio", "target_cpu"})).usual.form,
            Form::kGeneric);
}

TEST(EventShape, RawFormatsAreGeneric) {
  auto plan = plan_of("sched_waking", {"comm", "pid", "prio", "target_cpu"});
  plan.status = FormatStatus::kRaw;
  EXPECT_EQ(shape(plan).usual.form, Form::kGeneric);
}

TEST(EventShape, ManyFieldsNameThemselves) {
  std::vector<std::string> names;
  for (int i = 0; i < 31; ++i) names.push_back("f" + std::to_string(i));
  EXPECT_EQ(shape(plan_of("wide", names)).usual.form, Form::kGeneric);
  names.push_back("f31");
  EXPECT_EQ(shape(plan_of("wide", names)).usual.form, Form::kNamed);
}

TEST(EventShape, CompatNamesAllGenericEvents) {
  EXPECT_EQ(shape(plan_of("any", {"x"}), {.compat = true}).usual.form, Form::kNamed);
  const auto switches = plan_of("sched_waking", {"comm", "pid", "prio", "target_cpu"});
  EXPECT_EQ(shape(switches, {.compat = true}).usual.form, Form::kOwn);
}

TEST(EventShape, AddressesGetNamesWhereTheTraceHasThem) {
  auto plan = plan_of("any", {"ip"});
  plan.fields[0].is_symbol = true;
  EXPECT_EQ(shape(plan).usual.fields.size(), 1u);
  const auto fields = shape(plan, {.has_symbols = true}).usual.fields;
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[1].name, "ip_symbol");
}

TEST(EventShape, NumbersOfGenericEventsEnd) {
  EventCatalog catalog;
  catalog.events = {plan_of("one", {"x"}), plan_of("two", {"x"})};
  std::uint32_t next = protos::event::kLastGeneric;
  const auto shapes = shape_events(catalog, {}, next);
  EXPECT_EQ(shapes[0].usual.form, Form::kGeneric);
  EXPECT_EQ(shapes[1].usual.form, Form::kNamed);
}

TEST(AtraceMark, IsWhatReadersTakeWithoutAnError) {
  for (const char* text : {"B|12|name", "B|12|", "E", "E|12", "E|12\n", "C|1|n|-5", "S|1|n|7",
                           "F|1|n|7", "I|1|n", "N|1|t|n", "G|1|t|n|9", "H|1|t|9"}) {
    EXPECT_TRUE(is_atrace_mark(text)) << text;
  }
  for (const char* text : {"", "hello", "Event", "End of it", "B", "B|", "B|x|name", "C|1|n|",
                           "C|1|n|x", "C|1||5", "I|1|", "S|1|n", "G|1|t||9", "H|1|t|", "X|1|n",
                           "B|99999999999|n", "C|1|n|99999999999999999999"}) {
    EXPECT_FALSE(is_atrace_mark(text)) << text;
  }
}

// Encodes records of one event, and reads the messages back.
class Encoded {
 public:
  explicit Encoded(EventPlan plan, const ShapeOptions& options = {},
                   ByteOrder order = ByteOrder::kLittle)
      : order_(order) {
    catalog_.events.push_back(std::move(plan));
    std::uint32_t next = protos::event::kFirstGeneric;
    shapes_ = shape_events(catalog_, options, next).front();
  }
  // "number=value" of each field, in the order of the message.
  std::vector<std::string> fields(const Bytes& body) {
    EventEncoder encoder(catalog_, order_, printk_,
                         [](std::uint64_t address) { return address == 64 ? "sixty_four" : ""; });
    symbols.clear();
    const Bytes record = Bytes(order_).pad_to(kAt).text(body.str());
    const auto bytes =
        encoder.encode(catalog_.events[0], shapes_.usual, record.span(),
                       [this](std::uint64_t address) { symbols.push_back(address); });
    std::vector<std::string> out;
    protozero::pbf_reader message(bytes.data(), bytes.size());
    while (message.next()) {
      const std::string number = std::to_string(message.tag()) + "=";
      if (message.wire_type() == protozero::pbf_wire_type::varint) {
        out.push_back(number + std::to_string(message.get_int64()));
      } else {
        out.push_back(number + message.get_string());
      }
    }
    short_records = encoder.counters().get(Counter::kShortRecords);
    return out;
  }
  [[nodiscard]] Bytes bytes() const { return Bytes(order_); }

  std::vector<std::uint64_t> symbols;
  std::uint64_t short_records = 0;

 private:
  EventCatalog catalog_;
  ByteOrder order_;
  PrintkFormats printk_;
  EventShapes shapes_;
};

using Fields = std::vector<std::string>;

TEST(EventEncoder, OwnMessagesInBothByteOrders) {
  for (const auto order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    Encoded event(plan_of("sched_waking", {"comm", "pid", "prio", "target_cpu"}), {}, order);
    const auto comm = event.bytes().text("dd").pad_to(16);
    EXPECT_EQ(event.fields(event.bytes().text(comm.str()).u32(11).u32(0xffffffff).u32(3)),
              (Fields{"1=dd", "2=11", "3=-1", "5=3"}));
  }
}

TEST(EventEncoder, ShortRecordsLackFields) {
  Encoded event(plan_of("any", {"one", "two"}));
  EXPECT_EQ(event.fields(event.bytes().u32(1).u32(2)), (Fields{"1=1", "2=2"}));
  EXPECT_EQ(event.short_records, 0u);
  EXPECT_EQ(event.fields(event.bytes().u32(1)), (Fields{"1=1"}));
  EXPECT_EQ(event.fields(event.bytes().u16(1)), Fields{});
  EXPECT_EQ(event.short_records, 1u);
}

TEST(EventEncoder, DevicesAreNumberedAsUserSpaceDoes) {
  auto plan = plan_of("any", {"dev"});
  plan.fields[0].type = "dev_t";
  Encoded event(plan);
  EXPECT_EQ(event.fields(event.bytes().u32(8u << 20 | 17)), (Fields{"1=" + std::to_string(8 << 8 | 17)}));
  EXPECT_EQ(event.fields(event.bytes().u32(259u << 20 | 300)),
            (Fields{"1=" + std::to_string(259 << 8 | 300 % 256 | 1 << 20)}));
}

TEST(EventEncoder, BytesAndArraysAreText) {
  auto plan = plan_of("any", {"blob", "list"});
  plan.fields[0].kind = FieldKind::kBytes;
  plan.fields[1].kind = FieldKind::kRestArray;
  plan.fields[1].bytes = 0;
  plan.fields[1].element_bytes = 2;
  Encoded event(plan);
  EXPECT_EQ(event.fields(event.bytes().u32(0x0a0b00ff).u16(1).u16(0xffff)),
            (Fields{"1=ff000b0a", "2=[1,-1]"}));
}

TEST(EventEncoder, TextIsMadeUtf8) {
  Encoded event(plan_of("any", {"comm"}));
  EXPECT_EQ(event.fields(event.bytes().text("a\xff").pad_to(16)), (Fields{"1=a\xef\xbf\xbd"}));
}

TEST(EventEncoder, RepeatedNumbers) {
  auto plan = plan_of("sys_enter", {"id", "args"});
  plan.fields[1].kind = FieldKind::kArray;
  plan.fields[1].bytes = 16;
  plan.fields[1].element_bytes = 8;
  plan.min_bytes = plan.fields[1].end();
  Encoded event(plan);
  EXPECT_EQ(event.fields(event.bytes().u32(1).u64(5).u64(6)), (Fields{"1=1", "2=5", "2=6"}));
  EXPECT_EQ(event.fields(event.bytes().u32(1).u64(5)), (Fields{"1=1", "2=5"}));
}

TEST(EventEncoder, AddressesAreInternedOrNamed) {
  auto own = plan_of("workqueue_execute_start", {"work", "function"});
  Encoded interned(own);
  EXPECT_EQ(interned.fields(interned.bytes().u32(1).u32(64)), (Fields{"1=1", "2=64"}));
  EXPECT_EQ(interned.symbols, std::vector<std::uint64_t>{64});
  auto plan = plan_of("any", {"ip"});
  plan.fields[0].is_symbol = true;
  Encoded named(plan, {.has_symbols = true});
  EXPECT_EQ(named.fields(named.bytes().u32(64)), (Fields{"1=64", "2=sixty_four"}));
  EXPECT_EQ(named.fields(named.bytes().u32(65)), (Fields{"1=65"}));
}

}  // namespace
}  // namespace wbscope
