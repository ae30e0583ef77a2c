// SPDX-License-Identifier: Apache-2.0
// The record stream: what each frame becomes, and streams that are cut, too
// large or wrong in any byte.
#include "records/record_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "support.h"

namespace wbscope {
namespace {

// Writes frames as the Python part does.
class Stream {
 public:
  explicit Stream(const std::string& magic = std::string("WBREC\0\0\1", 8)) : bytes(magic) {}

  Stream& frame(int kind, const std::string& payload) {
    bytes += static_cast<char>(kind);
    bytes += u32(static_cast<std::uint32_t>(payload.size())) + payload;
    return *this;
  }
  static std::string u32(std::uint32_t value) { return raw(value); }
  static std::string i64(std::int64_t value) { return raw(value); }
  static std::string text(const std::string& value) {
    return u32(static_cast<std::uint32_t>(value.size())) + value;
  }
  // name, C type, encoding of each field
  static std::string event(const std::string& name, std::int64_t count,
                           const std::vector<std::tuple<std::string, std::string, char>>& fields) {
    std::string out = text("s") + text(name) + i64(count) + u32(static_cast<std::uint32_t>(fields.size()));
    for (const auto& [field, type, encoding] : fields) out += text(field) + text(type) + encoding;
    return out;
  }

  std::string bytes;

 private:
  template <typename T>
  static std::string raw(T value) {
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
  }
};

// A CellsBatch of integers and texts.
class Cells {
 public:
  Cells& integer(std::int64_t value) {
    types_ += '\2';
    auto left = static_cast<std::uint64_t>(value);
    for (; left > 0x7f; left >>= 7) varints_ += static_cast<char>((left & 0x7f) | 0x80);
    varints_ += static_cast<char>(left);
    return *this;
  }
  Cells& text(const std::string& value) {
    types_ += '\4';
    texts_ += value + '\0';
    return *this;
  }
  Cells& null() {
    types_ += '\1';
    return *this;
  }
  Cells& real(double value) {
    types_ += '\3';
    std::string bytes(sizeof(value), '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    reals_ += bytes;
    return *this;
  }
  Cells& blob(const std::string& value) {
    types_ += '\5';
    blobs_ += part('\x22', value);
    return *this;
  }
  [[nodiscard]] std::string message() const {
    // is_last_batch in front of the rest: order does not matter.
    return std::string("\x30\x01", 2) + part('\x0a', types_) + part('\x12', varints_) +
           part('\x1a', reals_) + blobs_ + part('\x2a', texts_);
  }

 private:
  static std::string part(char tag, const std::string& data) {
    if (data.empty()) return {};
    return std::string(1, tag) + static_cast<char>(data.size()) + data;
  }
  std::string types_, varints_, reals_, blobs_, texts_;
};

class RecordStreamTest : public ::testing::Test {
 protected:
  void load(const std::string& bytes) {
    loader_ = std::make_unique<RecordLoader>(db_, run_);
    std::size_t at = 0;
    loader_->load(
        [&](std::span<std::byte> out) {
          const std::size_t count = std::min(out.size(), bytes.size() - at);
          std::memcpy(out.data(), bytes.data() + at, count);
          at += count;
          return count;
        },
        [] {});
    loader_->finish();
  }
  // The message of the error that loading gives, else "".
  std::string error_of(const std::string& bytes) {
    Database db(":memory:", "test", Database::Mode::kCreate);
    RunWriter run(db);
    RecordLoader loader(db, run);
    std::size_t at = 0;
    try {
      loader.load(
          [&](std::span<std::byte> out) {
            const std::size_t count = std::min(out.size(), bytes.size() - at);
            std::memcpy(out.data(), bytes.data() + at, count);
            at += count;
            return count;
          },
          [] {});
      loader.finish();
    } catch (const ParseError& error) {
      return error.message().text;
    }
    return {};
  }
  std::string rows(const std::string& sql) { return testing::rows(db_, sql); }

  Database db_{":memory:", "test", Database::Mode::kCreate};
  RunWriter run_{db_};
  std::unique_ptr<RecordLoader> loader_;
};

const std::string kEnd;

Stream two_rows() {
  Stream stream;
  stream.frame(2, Stream::event("e", 5, {{"dev", "dev_t", '\1'}, {"name", "char[16]", '\0'}}));
  Cells cells;
  cells.integer(1).integer(100).integer(3).integer(42).integer(0x811).text("a");
  cells.integer(4).integer(101).integer(2).integer(-1).null().text("b");
  stream.frame(3, Stream::u32(0) + cells.message());
  return stream;
}

TEST_F(RecordStreamTest, RowsBecomeAnEventTable) {
  load(two_rows().frame(10, kEnd).bytes);
  EXPECT_EQ(rows("SELECT seq, ts, cpu, tid, buffer, dev, name FROM ev_e ORDER BY seq"),
            // 8:17 as the kernel numbers it: 8 << 20 | 17
            "1|100|3|42|0|8388625|a 4|101|2|-1|0|NULL|b");
  EXPECT_EQ(rows("SELECT event, id, count, loaded_count, table_name FROM event_counts"),
            "s:e|NULL|5|2|ev_e");
  EXPECT_EQ(rows("SELECT status FROM event_format"), "perfetto");
  EXPECT_EQ(rows("SELECT field, type, kind FROM event_field"),
            "dev|dev_t|integer name|char[16]|text");
  EXPECT_EQ(loader_->counted(), 5u);
  EXPECT_EQ(loader_->loaded(), 2u);
}

TEST_F(RecordStreamTest, LargeDeviceNumbers) {
  // makedev(0xfff, 0xfffff), the largest that the kernel's 32 bits hold.
  Stream stream;
  stream.frame(2, Stream::event("e", 1, {{"dev", "dev_t", '\1'}}));
  Cells cells;
  cells.integer(1).integer(1).integer(0).integer(0).integer(0xfffffffffLL & ~0xf00000000LL);
  stream.frame(3, Stream::u32(0) + cells.message()).frame(10, kEnd);
  load(stream.bytes);
  EXPECT_EQ(rows("SELECT dev FROM ev_e"), std::to_string(0xffffffffLL));
}

TEST_F(RecordStreamTest, EveryTypeOfCell) {
  Stream stream;
  stream.frame(2, Stream::event("e", 1, {{"r", "", '\0'}, {"x", "", '\0'}, {"y", "", '\0'}}));
  Cells cells;
  cells.integer(1).integer(1).integer(0).integer(0).real(0.5).blob("\x01\x02").blob("\x03");
  stream.frame(3, Stream::u32(0) + cells.message()).frame(10, kEnd);
  load(stream.bytes);
  EXPECT_EQ(rows("SELECT quote(r), quote(x), quote(y) FROM ev_e"), "0.5|X'0102'|X'03'");
}

TEST_F(RecordStreamTest, TheOtherFrames) {
  Stream stream;
  stream.frame(1, Stream::text("clock") + '\1' + Stream::text("boot"));
  stream.frame(1, Stream::text("page_bytes") + '\0' + Stream::i64(16384));
  stream.frame(2, Stream::event("e", 7, {}));
  const std::string span = Stream::i64(10) + Stream::i64(20) + Stream::i64(3);
  stream.frame(4, Stream::u32(5) + span + Stream::text("dd"));
  stream.frame(4, Stream::u32(5) + Stream::i64(5) + Stream::i64(9) + Stream::i64(1) +
                      Stream::text(""));
  stream.frame(5, Stream::i64(15) + Stream::i64(2) + Stream::i64(23));
  stream.frame(5, Stream::i64(16) + Stream::i64(-1) + Stream::i64(-1));
  stream.frame(6, Stream::u32(0) + Stream::text("f") + Stream::i64(1) + Stream::text("one") + '\0');
  stream.frame(7, Stream::text("n") + '\2' + Stream::i64(4) + Stream::text("d"));
  stream.frame(8, Stream::u32(1) + Stream::text("overrun") + Stream::i64(6));
  stream.frame(9, Stream::text("cut"));
  load(stream.frame(10, kEnd).bytes);
  EXPECT_EQ(rows("SELECT value FROM meta WHERE key IN ('clock', 'page_bytes') ORDER BY key"),
            "boot 16384");
  EXPECT_EQ(rows("SELECT * FROM task"), "5|dd|5|20|4");
  EXPECT_EQ(rows("SELECT * FROM lost_events"), "15|2|0|23 16|NULL|0|NULL");
  EXPECT_EQ(rows("SELECT * FROM enum_label"), "s:e|f|1|one|symbol");
  EXPECT_EQ(rows("SELECT * FROM ingest_stats WHERE value > 0 ORDER BY name"),
            "lost_gaps|data_loss|2|places where the kernel's ring buffer overran; see table "
            "lost_events n|data_loss|4|d");
  EXPECT_EQ(rows("SELECT * FROM cpu_stat"), "0|1|overrun|6");
  EXPECT_EQ(rows("SELECT * FROM buffer"), "0||boot|NULL");
  EXPECT_EQ(rows("SELECT key, value FROM meta WHERE key LIKE 'damage%' OR key LIKE '%_ts'"
                 " OR key LIKE '%_count' ORDER BY key"),
            "damage|cut damaged|1 events_count|7 first_ts|5 last_ts|20 loaded_count|0"
            " lost_events_count|23 lost_gaps_count|2");
  // Counted and not loaded.
  EXPECT_EQ(rows("SELECT count, loaded_count, table_name FROM event_counts"), "7|0|NULL");
}

TEST_F(RecordStreamTest, AStreamThatIsCutAnywhereIsAnError) {
  const std::string whole = two_rows().frame(10, kEnd).bytes;
  EXPECT_EQ(error_of(whole), "");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error_of(whole.substr(0, length)), "") << "cut at " << length;
  }
}

TEST_F(RecordStreamTest, ChangedBytesGiveAnErrorOrARowAndNoCrash) {
  const std::string whole = two_rows().frame(10, kEnd).bytes;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bits : {0x01, 0x80, 0xff}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      (void)error_of(changed);
    }
  }
}

TEST_F(RecordStreamTest, SaysWhatIsWrong) {
  EXPECT_NE(error_of("not a stream at all").find("WBREC"), std::string::npos);
  EXPECT_NE(error_of(Stream().frame(23, "").bytes).find("kind 23"), std::string::npos);
  EXPECT_NE(error_of(Stream().frame(3, Stream::u32(0)).bytes).find("event 0"), std::string::npos);
  EXPECT_NE(error_of(Stream().frame(9, Stream::text("x") + "y").bytes).find("behind the end"),
            std::string::npos);
  std::string huge = Stream().bytes + '\1' + Stream::u32(0xffffffffu);
  EXPECT_NE(error_of(huge).find("at most"), std::string::npos);
  // As many fields as a number can say, in a frame of a few bytes.
  const std::string many = Stream::text("s") + Stream::text("e") + Stream::i64(1);
  EXPECT_NE(error_of(Stream().frame(2, many + Stream::u32(0xffffffffu)).bytes).find("fields"),
            std::string::npos);
}

// They would make rows and counters with one key.
TEST_F(RecordStreamTest, NamesHaveToBeNew) {
  const std::string event = Stream::event("e", 2, {});
  EXPECT_NE(error_of(Stream().frame(2, event).frame(2, event).bytes).find("s:e twice"),
            std::string::npos);
  const std::string stat = Stream::text("lost_gaps") + '\1' + Stream::i64(1) + Stream::text("x");
  EXPECT_NE(error_of(Stream().frame(7, stat).bytes).find("own counter"), std::string::npos);
}

TEST_F(RecordStreamTest, RowsHaveToBeWholeAndInOrder) {
  const std::string event = Stream::event("e", 2, {});
  const auto with = [&](const Cells& cells) {
    return error_of(Stream().frame(2, event).frame(3, Stream::u32(0) + cells.message()).bytes);
  };
  EXPECT_NE(with(Cells().integer(1).integer(1).integer(0)).find("whole rows"), std::string::npos);
  EXPECT_NE(with(Cells().integer(1).integer(1).integer(0).text("x")).find("no integer"),
            std::string::npos);
  EXPECT_NE(with(Cells().integer(0).integer(1).integer(0).integer(0)).find("seq 0"),
            std::string::npos);
  EXPECT_NE(with(Cells().integer(1).integer(1).integer(-1).integer(0)).find("CPU -1"),
            std::string::npos);
  EXPECT_NE(with(Cells().integer(1).integer(1).integer(0).integer(1LL << 40)).find("32 bits"),
            std::string::npos);
}

}  // namespace
}  // namespace wbscope
