// SPDX-License-Identifier: Apache-2.0
// The record stream: what the Python part of wbscope reads out of a trace, on
// its way into a run database.
//
// It starts with the 8 bytes "WBREC\0\0\1". Frames follow:
//
//   u8 kind, u32 length, payload of length bytes (at most kMaxFrameBytes)
//
// Integers are little-endian; "text" is u32 length and as many bytes of UTF-8.
// Payloads, by kind:
//
//   1 meta     text key, u8 is_text, then text value or i64 value
//   2 event    text system ("" = not known), text name, u64 records in the
//              trace, u32 fields, and for each: text name, text C type ("" =
//              not known), u8 encoding (0 as it is, 1 dev_t of user space).
//              Events are numbered 0, 1, ... in the order of these frames.
//   3 rows     u32 event, then a CellsBatch of whole rows with the columns seq,
//              ts, cpu, tid and the fields of the event. seq grows from row to
//              row of an event.
//   4 task     i32 tid, i64 first_ts, i64 last_ts, u64 events, text comm ("" =
//              not known)
//   5 lost     i64 ts, i64 cpu (-1: not of one CPU), i64 count (-1: not known)
//   6 label    u32 event, text field, i64 value, text label, u8 is_flag
//   7 stat     text name, u8 severity (0 info, 1 error, 2 data_loss), i64
//              value, text description: a row of ingest_stats
//   8 cpu_stat u32 cpu, text key, i64 value
//   9 damage   text: what could not be read
//  10 end      nothing; without it the stream was cut and nothing is kept
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "records/cells_batch.h"
#include "sink/event_index.h"
#include "sink/run_writer.h"
#include "sink/value_writer.h"

namespace wbscope {

inline constexpr std::size_t kMaxFrameBytes = 64u << 20;

enum class FrameKind : std::uint8_t {
  kMeta = 1,
  kEvent,
  kRows,
  kTask,
  kLost,
  kLabel,
  kStat,
  kCpuStat,
  kDamage,
  kEnd,
};

// Takes the frames of a stream, checks them, and writes what they hold.
class RecordLoader {
 public:
  RecordLoader(Database& db, RunWriter& run, PreviousChoice previous = {},
               EventIndexes indexes = {})
      : db_(db),
        run_(run),
        writer_(db, std::move(previous)),
        indexes_(std::move(indexes)) {}

  // The next count bytes of the stream, fewer only at its end.
  using Read = std::function<std::size_t(std::span<std::byte> out)>;

  // Reads up to and with the end frame; on_frame is called for each.
  // Raises: ParseError for a stream that is cut or not of this form.
  void load(const Read& read, const std::function<void()>& on_frame);

  // Writes the tables that need all frames.
  void finish();

  [[nodiscard]] std::uint64_t counted() const noexcept { return counted_; }
  [[nodiscard]] std::uint64_t loaded() const noexcept { return loaded_; }
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

 private:
  struct Event {
    std::uint32_t id = ValueWriter::kNone;  // of the ValueWriter
    std::uint64_t counted = 0;
    std::int64_t last_seq = 0;
    std::vector<std::uint32_t> fields;  // of the ValueWriter
    std::vector<bool> is_device;
    std::vector<EnumLabel> labels;
  };

  [[noreturn]] void fail(const std::string& detail) const;
  [[nodiscard]] std::string_view text(ByteReader& in) const;
  template <typename T>
  [[nodiscard]] T number(ByteReader& in) const;
  [[nodiscard]] Event& event_of(ByteReader& in);

  void take(FrameKind kind, std::span<const std::byte> payload);
  void take_meta(ByteReader& in);
  void take_event(ByteReader& in);
  void take_rows(ByteReader& in);
  void take_task(ByteReader& in);
  void take_lost(ByteReader& in);
  void take_label(ByteReader& in);
  void take_stat(ByteReader& in);
  void take_cpu_stat(ByteReader& in);

  Database& db_;
  RunWriter& run_;
  ValueWriter writer_;
  EventIndexes indexes_;
  std::vector<Event> events_;
  std::vector<ValueWriter::Cell> cells_;
  std::map<std::int32_t, TaskSpan> tasks_;
  std::map<std::int32_t, std::string> names_;
  std::string clock_;
  std::string damage_;
  std::uint64_t offset_ = 0;  // of the frame that is taken
  std::uint64_t counted_ = 0;
  std::uint64_t loaded_ = 0;
  std::uint64_t lost_gaps_ = 0;
  std::uint64_t lost_known_ = 0;
  std::size_t labels_ = 0;
};

}  // namespace wbscope
