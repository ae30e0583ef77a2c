// SPDX-License-Identifier: Apache-2.0
// Frames of the record stream into tables.
#include "records/record_stream.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"

namespace wbscope {
namespace {

constexpr std::array<char, 8> kMagic{'W', 'B', 'R', 'E', 'C', '\0', '\0', '\1'};
constexpr std::size_t kHeadBytes = 5;          // of a frame
constexpr std::size_t kReadBytes = 256u << 10;  // memory grows with what arrives
constexpr std::size_t kLeadCells = 4;          // seq, ts, cpu, tid
constexpr std::size_t kMaxEvents = 8192;
constexpr std::size_t kMaxTasks = 1u << 20;
constexpr std::size_t kMaxLabels = 1u << 16;

// What user space calls a device, from makedev(3), as the kernel's own number
// (include/linux/kdev_t.h): major in the bits from 20 up, minor below.
std::int64_t kernel_device(std::int64_t user) noexcept {
  const auto number = static_cast<std::uint64_t>(user);
  const std::uint64_t major = ((number >> 8) & 0xfffu) | ((number >> 32) & 0xfffff000u);
  const std::uint64_t minor = (number & 0xffu) | ((number >> 12) & 0xffffff00u);
  return static_cast<std::int64_t>(major << 20 | minor);
}

// finish() writes these.
bool is_own_counter(std::string_view name) {
  return std::any_of(kCounterInfo.begin(), kCounterInfo.end(),
                     [name](const CounterInfo& info) { return info.name == name; });
}

std::string printed(std::size_t number) { return std::to_string(number); }

}  // namespace

void RecordLoader::fail(const std::string& detail) const {
  throw ParseError("bad-record-stream", "record stream", offset_, detail);
}

std::string_view RecordLoader::text(ByteReader& in) const {
  const auto length = in.read<std::uint32_t>();
  const auto bytes = length ? in.take(*length) : std::nullopt;
  if (!bytes) fail("a text reaches over the end of its frame");
  return as_text(*bytes);
}

template <typename T>
T RecordLoader::number(ByteReader& in) const {
  const auto value = in.read<T>();
  if (!value) fail("a number reaches over the end of its frame");
  return *value;
}

RecordLoader::Event& RecordLoader::event_of(ByteReader& in) {
  const auto index = number<std::uint32_t>(in);
  if (index >= events_.size()) {
    fail("found event " + printed(index) + ", wanted less than " + printed(events_.size()));
  }
  return events_[index];
}

void RecordLoader::load(const Read& read, const std::function<void()>& on_frame) {
  std::vector<std::byte> data(kMagic.size());
  const auto fill = [&](std::size_t from, std::size_t count) {
    data.resize(from + count);
    const std::size_t got = read(std::span(data).subspan(from, count));
    if (got < count) {
      fail("the stream ends after " + printed(got) + " of " + printed(count) + " bytes");
    }
  };
  fill(0, kMagic.size());
  if (as_text(data) != std::string_view(kMagic.data(), kMagic.size())) {
    fail("found no record stream, wanted one that starts with WBREC");
  }
  for (offset_ = kMagic.size();;) {
    fill(0, kHeadBytes);
    ByteReader head(data, ByteOrder::kLittle);
    const auto kind = number<std::uint8_t>(head);
    const std::size_t length = number<std::uint32_t>(head);
    if (length > kMaxFrameBytes) {
      fail("found a frame of " + printed(length) + " bytes, wanted at most " +
           printed(kMaxFrameBytes));
    }
    data.clear();
    for (std::size_t done = 0; done < length;) {
      const std::size_t part = std::min(length - done, kReadBytes);
      fill(done, part);
      done += part;
    }
    if (kind == static_cast<std::uint8_t>(FrameKind::kEnd)) return;
    take(static_cast<FrameKind>(kind), data);
    offset_ += kHeadBytes + length;
    on_frame();
  }
}

void RecordLoader::take(FrameKind kind, std::span<const std::byte> payload) {
  ByteReader in(payload, ByteOrder::kLittle);
  switch (kind) {
    case FrameKind::kMeta:
      take_meta(in);
      break;
    case FrameKind::kEvent:
      take_event(in);
      break;
    case FrameKind::kRows:
      take_rows(in);
      break;
    case FrameKind::kTask:
      take_task(in);
      break;
    case FrameKind::kLost:
      take_lost(in);
      break;
    case FrameKind::kLabel:
      take_label(in);
      break;
    case FrameKind::kStat:
      take_stat(in);
      break;
    case FrameKind::kCpuStat:
      take_cpu_stat(in);
      break;
    case FrameKind::kDamage:
      damage_ += (damage_.empty() ? "" : "; ") + std::string(text(in));
      break;
    default:
      fail("found frame kind " + printed(static_cast<std::size_t>(kind)) + ", wanted 1 to 10");
  }
  if (in.left() != 0) fail("found " + printed(in.left()) + " bytes behind the end of a frame");
}

void RecordLoader::take_meta(ByteReader& in) {
  const auto key = text(in);
  if (number<std::uint8_t>(in) != 0) {
    const auto value = text(in);
    run_.meta(key, value);
    if (key == "clock") clock_ = value;
  } else {
    run_.meta(key, number<std::int64_t>(in));
  }
}

void RecordLoader::take_event(ByteReader& in) {
  if (events_.size() >= kMaxEvents) fail("found more than " + printed(kMaxEvents) + " events");
  const auto system = text(in);
  const auto name = text(in);
  Event event;
  event.id = writer_.event(system, name);
  if (event.id != events_.size()) {
    fail("found event " + std::string(system) + ":" + std::string(name) + " twice");
  }
  event.counted = number<std::uint64_t>(in);
  const auto fields = number<std::uint32_t>(in);
  // Each field takes 9 bytes at least: the count is checked before it is used.
  if (fields > in.left() / 9) fail("found " + printed(fields) + " fields in a short frame");
  for (std::uint32_t i = 0; i < fields; ++i) {
    ValueField field;
    field.name = text(in);
    field.type = text(in);
    event.fields.push_back(writer_.field(event.id, field));
    event.is_device.push_back(number<std::uint8_t>(in) == 1);
  }
  counted_ += event.counted;
  events_.push_back(std::move(event));
}

void RecordLoader::take_rows(ByteReader& in) {
  Event& event = event_of(in);
  auto batch = CellsBatch::parse(*in.take(in.left()));
  const std::size_t columns = kLeadCells + event.fields.size();
  if (!batch) fail("a batch of cells cannot be read");
  if (batch->size() % columns != 0) {
    fail("found " + printed(batch->size()) + " cells, wanted whole rows of " + printed(columns));
  }
  cells_.resize(event.fields.size());
  for (std::size_t left = batch->size() / columns; left > 0; --left) {
    std::array<std::int64_t, kLeadCells> lead{};
    CellValue value;
    for (auto& number : lead) {
      const bool good = batch->next(value) && std::holds_alternative<std::int64_t>(value);
      if (!good) fail("seq, ts, cpu or tid of a row is no integer");
      number = std::get<std::int64_t>(value);
    }
    const auto [seq, ts, cpu, tid] = lead;
    if (seq <= event.last_seq) {
      fail("found seq " + std::to_string(seq) + " after " + std::to_string(event.last_seq));
    }
    event.last_seq = seq;
    if (cpu < 0 || cpu > std::numeric_limits<std::uint32_t>::max() ||
        tid < std::numeric_limits<std::int32_t>::min() ||
        tid > std::numeric_limits<std::int32_t>::max()) {
      fail("found CPU " + std::to_string(cpu) + " and thread " + std::to_string(tid) +
           ", wanted numbers of 32 bits");
    }
    for (std::size_t i = 0; i < event.fields.size(); ++i) {
      if (!batch->next(value)) fail("a batch has fewer values than cells");
      if (event.is_device[i] && std::holds_alternative<std::int64_t>(value)) {
        value = kernel_device(std::get<std::int64_t>(value));
      }
      cells_[i] = {event.fields[i], value};
    }
    writer_.write_at(seq, event.id, ts, static_cast<std::uint32_t>(cpu),
                     static_cast<std::int32_t>(tid), 0, cells_);
  }
}

void RecordLoader::take_task(ByteReader& in) {
  const auto tid = number<std::int32_t>(in);
  TaskSpan span;
  span.first_ts = number<std::int64_t>(in);
  span.last_ts = number<std::int64_t>(in);
  span.events = number<std::uint64_t>(in);
  const auto comm = text(in);
  if (!tasks_.contains(tid) && tasks_.size() >= kMaxTasks) {
    fail("found more than " + printed(kMaxTasks) + " tasks");
  }
  // A thread number that was used again comes once for each of its threads.
  const auto [place, is_new] = tasks_.try_emplace(tid, span);
  if (!is_new) {
    place->second.first_ts = std::min(place->second.first_ts, span.first_ts);
    place->second.last_ts = std::max(place->second.last_ts, span.last_ts);
    place->second.events += span.events;
  }
  if (!comm.empty()) names_[tid] = comm;
}

void RecordLoader::take_lost(ByteReader& in) {
  const auto ts = number<std::int64_t>(in);
  const auto cpu = number<std::int64_t>(in);
  const auto count = number<std::int64_t>(in);
  Statement insert(db_, "INSERT INTO lost_events VALUES (?, ?, 0, ?)");
  insert.bind(1, ts);
  if (cpu < 0) {
    insert.bind_null(2);
  } else {
    insert.bind(2, cpu);
  }
  if (count < 0) {
    insert.bind_null(3);
  } else {
    insert.bind(3, count);
    lost_known_ += static_cast<std::uint64_t>(count);
  }
  insert.run();
  ++lost_gaps_;
}

void RecordLoader::take_label(ByteReader& in) {
  Event& event = event_of(in);
  EnumLabel label;
  label.field = text(in);
  label.value = number<std::int64_t>(in);
  label.label = text(in);
  label.is_flag = number<std::uint8_t>(in) != 0;
  if (++labels_ > kMaxLabels) fail("found more than " + printed(kMaxLabels) + " labels");
  event.labels.push_back(std::move(label));
}

void RecordLoader::take_stat(ByteReader& in) {
  constexpr std::array<std::string_view, 3> kSeverities{"info", "error", "data_loss"};
  const auto name = text(in);
  const auto severity = number<std::uint8_t>(in);
  const auto value = number<std::int64_t>(in);
  const auto description = text(in);
  if (is_own_counter(name)) fail("found a stat with the name of an own counter");
  if (severity >= kSeverities.size()) fail("found severity " + printed(severity) + ", wanted 0 to 2");
  Statement insert(db_, "INSERT OR REPLACE INTO ingest_stats VALUES (?, ?, ?, ?)");
  insert.bind_text(1, name);
  insert.bind_text(2, kSeverities[severity]);
  insert.bind(3, value);
  insert.bind_text(4, description);
  insert.run();
}

void RecordLoader::take_cpu_stat(ByteReader& in) {
  const auto cpu = number<std::uint32_t>(in);
  const auto key = text(in);
  const auto value = number<std::int64_t>(in);
  Statement insert(db_, "INSERT INTO cpu_stat VALUES (0, ?, ?, ?)");
  insert.bind(1, std::int64_t{cpu});
  insert.bind_text(2, key);
  insert.bind(3, value);
  insert.run();
}

void RecordLoader::finish() {
  for (auto& event : events_) writer_.describe(event.id, {}, std::move(event.labels));
  writer_.finish();
  writer_.link_groups();
  EventCatalog catalog = writer_.catalog();
  EventTotals totals = writer_.totals();
  for (auto& plan : catalog.events) plan.status = FormatStatus::kPerfetto;
  totals.counted.assign(catalog.events.size(), 0);
  for (const auto& event : events_) {
    if (event.id < totals.counted.size()) totals.counted[event.id] += event.counted;
  }
  for (const std::uint64_t n : totals.loaded) loaded_ += n;
  const std::vector<bool> loaded = writer_.loaded_events();
  run_.formats(catalog, loaded);
  indexes_.create(db_, catalog, loaded);
  run_.event_counts(catalog, loaded, totals);
  run_.tasks(tasks_, std::move(names_));
  Statement buffer(db_, "INSERT INTO buffer VALUES (0, '', ?, NULL)");
  buffer.bind_text(1, clock_);
  buffer.run();
  Counters counters = writer_.counters();
  counters.add(Counter::kLostGaps, lost_gaps_);
  run_.ingest_stats(counters);
  run_.meta("events_count", static_cast<std::int64_t>(counted_));
  run_.meta("loaded_count", static_cast<std::int64_t>(loaded_));
  run_.meta("lost_gaps_count", static_cast<std::int64_t>(lost_gaps_));
  run_.meta("lost_events_count", static_cast<std::int64_t>(lost_known_));
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const auto& [tid, span] : tasks_) {
    first = std::min(first, span.first_ts);
    last = std::max(last, span.last_ts);
  }
  if (!tasks_.empty()) {
    run_.meta("first_ts", first);
    run_.meta("last_ts", last);
  }
  run_.meta("damaged", std::int64_t{damage_.empty() ? 0 : 1});
  run_.meta("damage", damage_);
}

}  // namespace wbscope
