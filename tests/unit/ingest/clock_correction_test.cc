// SPDX-License-Identifier: Apache-2.0
// Time stamps of guests; masks and addresses as text; names of addresses.
#include "tracedat/clock_correction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <climits>

#include "base/child_process.h"
#include "sink/field_text.h"
#include "sink/saved_text.h"
#include "sink/symbols.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;

TraceInfo guest(std::vector<ShiftSample> samples, std::uint32_t flags = 0) {
  TraceInfo info;
  info.buffers.resize(2);
  info.buffers[1].name = "second";
  info.shift.flags = flags;
  info.shift.cpus = {{}, std::move(samples)};
  return info;
}

TEST(ClockCorrection, OnlyCpusWithSamplesOfTheTopBuffer) {
  const TraceInfo info = guest({{.time = 0, .offset = 5}});
  EXPECT_EQ(ClockCorrection(info, 0, 1).to_ns(100), 105);
  EXPECT_EQ(ClockCorrection(info, 0, 0).to_ns(100), 100);
  EXPECT_EQ(ClockCorrection(info, 0, 9).to_ns(100), 100);
  EXPECT_EQ(ClockCorrection(info, 1, 1).to_ns(100), 100);
}

TEST(ClockCorrection, StepsAndInterpolation) {
  const std::vector<ShiftSample> samples{{.time = 100, .offset = -10},
                                         {.time = 200, .offset = 10, .scaling = 3, .fraction = 1},
                                         {.time = 300, .offset = 40}};
  const TraceInfo steps = guest(samples);
  const ClockCorrection stepwise(steps, 0, 1);
  EXPECT_EQ(stepwise.to_ns(50), 40);
  EXPECT_EQ(stepwise.to_ns(199), 189);
  EXPECT_EQ(stepwise.to_ns(200), 310);
  EXPECT_EQ(stepwise.to_ns(400), 610);  // the last pair
  const TraceInfo line = guest(samples, ClockShift::kInterpolate);
  const ClockCorrection interpolated(line, 0, 1);
  EXPECT_EQ(interpolated.to_ns(150), 150);
  EXPECT_EQ(interpolated.to_ns(250), 375 + 25);
}

// No stamp and no sample may be undefined.
TEST(ClockCorrection, ExtremeSamples) {
  for (const std::int64_t time : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}, INT64_MAX}) {
    for (const std::int64_t offset : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) {
      for (const std::uint32_t fraction : {0u, 63u, 64u, UINT32_MAX}) {
        const TraceInfo info = guest({{time, offset, offset, fraction},
                                      {static_cast<std::int64_t>(static_cast<std::uint64_t>(time) + 1),
                                       -(offset + 1), time, fraction}},
                                     1);
        const ClockCorrection clock(info, 0, 1);
        for (const std::uint64_t raw : {std::uint64_t{0}, std::uint64_t{INT64_MAX}, UINT64_MAX}) {
          (void)clock.to_ns(raw);
        }
      }
    }
  }
}

TEST(FieldText, MasksOfBothByteOrders) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    for (const std::uint32_t bytes : {4u, 8u}) {
      const Bytes mask = Bytes(order).integer(0x8000000f, bytes).integer(2, bytes);
      std::string bits;
      append_bitmask(mask.span(), {order, bytes}, bits);
      EXPECT_EQ(bits, bytes == 4 ? "00000002,8000000f" : "00000000,00000002,00000000,8000000f");
      std::string cpus;
      append_cpumask(mask.span(), {order, bytes}, cpus);
      EXPECT_EQ(cpus, bytes == 4 ? "0-3,31,33" : "0-3,31,65");
    }
  }
  std::string odd;
  append_bitmask(Bytes(ByteOrder::kBig).u8(1).u8(2).u8(3).span(), {ByteOrder::kBig, 8}, odd);
  EXPECT_EQ(odd, "010203");
  append_cpumask({}, {}, odd);
  EXPECT_EQ(odd, "010203");
}

// Numbers of the family in the order of the trace, of ports as on the wire.
TEST(FieldText, AddressesOfSockets) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    Bytes four = Bytes(order).u16(2).u8(8).u8(1).u8(192).u8(0).u8(2).u8(7).pad_to(16);
    std::string text;
    EXPECT_TRUE(append_sockaddr(four.span(), order, text));
    EXPECT_EQ(text, "192.0.2.7:2049");
    EXPECT_FALSE(append_sockaddr(four.span().first(15), order, text));
    const Bytes six = Bytes(order).u16(10).u8(8).u8(1).pad_to(23).u8(1).pad_to(28);
    text.clear();
    EXPECT_TRUE(append_sockaddr(six.span(), order, text));
    EXPECT_EQ(text, "[::1]:2049");
    EXPECT_FALSE(append_sockaddr(six.span().first(27), order, text));
    EXPECT_FALSE(append_sockaddr(Bytes(order).u16(1).pad_to(110).span(), order, text));
    EXPECT_FALSE(append_sockaddr(four.span().first(3), order, text));
    EXPECT_EQ(text, "[::1]:2049");
  }
}

TEST(Symbols, TheClosestBelow) {
  Database db(":memory:", "test", Database::Mode::kCreate);
  db.exec("CREATE TABLE symbol (address INTEGER PRIMARY KEY, name, offset, module)");
  AddressSet addresses;
  // 0x21100 is as far behind the last symbol as may be.
  for (const std::uint64_t address :
       {0x1000ull, 0x10ffull, 0x1100ull, 0xfffull, 0x900000ull, 0x21100ull, 0x21101ull}) {
    addresses.insert(address);
    addresses.insert(address);
  }
  EXPECT_EQ(addresses.all().size(), 7u);
  // Not in order, as symbols of modules are not; a line that is none.
  write_symbols(db, addresses,
                "0000000000001100 t third\t[mod]\nzz T bad\n0000000000001000 T first\n"
                "0000000000001000 T second\n0000000000000f00 A absolute\n"
                "0000000000000f80 a local\n00000");
  Statement rows(db, "SELECT group_concat(address || name || offset || ifnull(module, ''), ' ')"
                     " FROM (SELECT * FROM symbol ORDER BY address)");
  ASSERT_TRUE(rows.step());
  EXPECT_EQ(rows.text(0), "4096first0 4351first255 4352third0mod 135424third131072mod");
}

// The kernel writes <...> where it knows none.
TEST(SavedText, NamesOfTasks) {
  const auto names = parse_saved_cmdlines("11 dd\n12 <...>\n13\nx y\n14 a b");
  EXPECT_EQ(names, (std::map<std::int32_t, std::string>{{11, "dd"}, {14, "a b"}}));
}

// All tries share the time: a work that hangs takes it all.
TEST(ChildProcess, TimeOfAllTriesIsBounded) {
  CpuBudget budget(0.5);
  const auto hang = [](const Announce& announce) -> std::string {
    announce(7);
    std::atomic<int> turns = 0;
    while (true) ++turns;
  };
  EXPECT_EQ(ChildWork(hang, budget).finish(budget).died_in, 7u);
  EXPECT_TRUE(budget.is_spent());
  CpuBudget other(5);
  const auto ends = [](const Announce&) { return std::string("well"); };
  EXPECT_EQ(ChildWork(ends, other).finish(other).bytes, "well");
  EXPECT_FALSE(other.is_spent());
}

}  // namespace
}  // namespace wbscope
