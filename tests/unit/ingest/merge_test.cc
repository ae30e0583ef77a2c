// SPDX-License-Identifier: Apache-2.0
// CpuStream and Merger: counts, tasks, order across CPUs, and errors of the
// reading threads.
#include "pipeline/merge.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "trace_builder.h"
#include "tracedat/trace_file.h"

namespace wbscope {
namespace {

using testing::build_v7;
using testing::PageBuilder;
using testing::TempDir;
using testing::tiny_record;
using testing::TraceSpec;

constexpr auto kOrder = ByteOrder::kLittle;
using Row = std::pair<std::int64_t, std::uint32_t>;  // (ts, value)

// One page: records of task tid at the given times, values counted from first.
std::string page(const std::vector<std::uint32_t>& times, std::uint32_t first,
                 std::int32_t tid = 11) {
  PageBuilder builder;
  std::uint32_t last = 0;
  for (const std::uint32_t ts : times) {
    builder.record(ts - last, tiny_record(kOrder, tid, first++));
    last = ts;
  }
  return builder.build();
}

// A file, and all that is needed to read it.
class Trace {
 public:
  explicit Trace(const TraceSpec& spec)
      : file_(dir_.write("trace.dat", build_v7(spec))),
        info_(read_trace_info(file_)),
        catalog_(build_event_catalog(info_)),
        dispatch_(catalog_, std::vector<bool>(catalog_.events.size(), true)) {}

  [[nodiscard]] std::vector<std::unique_ptr<CpuStream>> streams(std::size_t block_bytes) const {
    std::vector<std::unique_ptr<CpuStream>> streams;
    for (std::uint32_t b = 0; b < info_.buffers.size(); ++b) {
      for (const auto& region : info_.buffers[b].regions) {
        streams.push_back(
            std::make_unique<CpuStream>(file_, info_, b, region, dispatch_, block_bytes));
      }
    }
    return streams;
  }
  [[nodiscard]] CpuStream stream(std::size_t cpu, const TimeRange& range = {},
                                 const StampFixes* fixes = nullptr) const {
    return {file_, info_, 0, info_.buffers[0].regions[cpu], dispatch_, 1 << 16, range, fixes};
  }
  // Reading from now on fails with EBADF, as a dying disk does with EIO.
  void break_file() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      if (std::filesystem::read_symlink(entry, ignored) != file_.path()) continue;
      const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
      ::dup2(null, std::stoi(entry.path().filename().string()));
      ::close(null);
    }
  }

 private:
  TempDir dir_;
  InputFile file_;
  TraceInfo info_;
  EventCatalog catalog_;
  EventDispatch dispatch_;
};

std::uint32_t value_of(std::span<const std::byte> record) {
  return load<std::uint32_t>(record.data() + 8, kOrder);
}

std::vector<Row> merged(const Trace& trace, unsigned threads, std::size_t block_bytes) {
  WorkerPool pool(threads);
  Merger merger(trace.streams(block_bytes), pool);
  std::vector<Row> rows;
  merger.run(
      [&rows](const CpuStream&, const RecordRef& ref, const RecordBlock& block) {
        const auto record = block.bytes(ref);
        rows.emplace_back(ref.ts, value_of(record));
        return true;
      },
      [] {});
  return rows;
}

TraceSpec spec_of(std::vector<std::string> cpu_pages) {
  TraceSpec spec;
  spec.cpu_pages = std::move(cpu_pages);
  return spec;
}

TEST(Merger, OrderOfTimeThenOfStreams) {
  const Trace trace(spec_of({page({10, 30, 30}, 0), page({10, 20, 30}, 100), page({5, 30}, 200)}));
  EXPECT_EQ(merged(trace, 2, 4096),
            (std::vector<Row>{{5, 200}, {10, 0}, {10, 100}, {20, 101}, {30, 1}, {30, 2}, {30, 102},
                              {30, 201}}));
}

// 64 CPUs of 40 pages each, one thread, blocks that hold one page only.
TEST(Merger, ManyCpusOneThreadTinyBlocks) {
  constexpr std::uint32_t kCpus = 64, kPages = 40;
  TraceSpec spec;
  for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
    std::string pages;
    for (std::uint32_t p = 0; p < kPages; ++p) {
      const std::uint32_t ts = p * 1000 + (cpu * 37) % 64;
      pages += page({ts, ts + 500}, (cpu << 16) + 2 * p);
    }
    spec.cpu_pages.push_back(pages);
  }
  const Trace trace(spec);
  for (const unsigned threads : {1u, 4u}) {
    const std::vector<Row> rows = merged(trace, threads, 1);
    ASSERT_EQ(rows.size(), kCpus * kPages * 2);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                               [](const Row& a, const Row& b) { return a.first < b.first; }));
    std::vector<std::uint32_t> next(kCpus, 0);
    for (const auto& [ts, value] : rows) {  // each CPU's own order is kept
      EXPECT_EQ(value & 0xffff, next[value >> 16]++);
    }
  }
}

TEST(Merger, EmptyStreams) {
  EXPECT_TRUE(merged(Trace(spec_of({"", ""})), 1, 4096).empty());
  EXPECT_EQ(merged(Trace(spec_of({"", page({7}, 1), PageBuilder().build()})), 1, 4096),
            (std::vector<Row>{{7, 1}}));
}

TEST(Merger, NoStreams) {
  WorkerPool pool(1);
  Merger merger({}, pool);
  EXPECT_TRUE(merger.run(
      [](const CpuStream&, const RecordRef&, const RecordBlock&) {
        ADD_FAILURE();
        return true;
      },
      [] {}));
  EXPECT_EQ(merger.consumed(), 0u);
}

TEST(Merger, ErrorOfAReadingThreadIsRethrown) {
  const Trace trace(spec_of({page({1, 2}, 0), page({3}, 0)}));
  trace.break_file();
  const auto error = testing::error_of([&] { (void)merged(trace, 2, 4096); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message().slug, "cannot-read");
}

// The error comes while the merge is busy with records that are good: it must
// not look like the end of the stream. A fill reads a window of 512 pages.
TEST(Merger, LateErrorIsRethrownToo) {
  constexpr std::uint32_t kWindow = 512, kPages = 8 * kWindow;
  std::string pages;
  for (std::uint32_t p = 0; p < kPages; ++p) pages += page({p}, 0);
  const Trace trace(spec_of({pages}));
  WorkerPool pool(1);
  Merger merger(trace.streams(1), pool);
  std::size_t seen = 0;
  const auto error = testing::error_of([&] {
    merger.run(
        [&](const CpuStream&, const RecordRef&, const RecordBlock&) {
          ++seen;
          // Twice, let the reading thread finish what it has begun.
          if (seen == 1 || seen == kWindow + 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
          if (seen == 1) trace.break_file();
          return true;
        },
        [] {});
  });
  EXPECT_TRUE(error) << seen << " records and no error";
  EXPECT_LE(seen, 2 * kWindow);
}

TEST(Merger, StopOfTheCallerIsPassedOn) {
  std::string pages;
  for (std::uint32_t p = 0; p < 100; ++p) pages += page({p}, 0);
  const Trace trace(spec_of({pages, pages}));
  WorkerPool pool(1);
  Merger merger(trace.streams(1), pool);
  const auto none = [](const CpuStream&, const RecordRef&, const RecordBlock&) { return true; };
  EXPECT_THROW(merger.run(none, [] { throw std::runtime_error("stop"); }), std::runtime_error);
}

TEST(CpuStream, CountsEventsAndTasks) {
  const Trace trace(spec_of({page({10, 20}, 0, 11) + page({30}, 0, 12) + page({40}, 0, 11)}));
  CpuStream stream = trace.stream(0);
  RecordBlock block;
  EXPECT_FALSE(stream.fill(block));
  EXPECT_EQ(block.refs.size(), 4u);
  EXPECT_EQ(stream.counts().at(0), 4u);
  EXPECT_EQ(stream.tasks().at(11).events, 3u);
  EXPECT_EQ(stream.tasks().at(11).first_ts, 10);
  EXPECT_EQ(stream.tasks().at(11).last_ts, 40);
  EXPECT_EQ(stream.tasks().at(12).events, 1u);
  EXPECT_EQ(stream.counters().get(Counter::kPages), 3u);
  EXPECT_EQ(stream.counters().get(Counter::kBytesUncompressed), 3u * 512);
  EXPECT_FALSE(stream.damage());
}

TEST(CpuStream, CountsWhatItCannotRead) {
  const std::string good = tiny_record(kOrder, 11, 0);
  std::string unknown = good;
  unknown[0] = 78;
  const std::string pages = PageBuilder().start(50).record(0, good).record(0, unknown).build() +
                            PageBuilder().start(40).record(0, good).build() +           // backwards
                            PageBuilder().start(60).record(0, good.substr(0, 8)).build() +  // short
                            PageBuilder().start(61).record(0, good.substr(0, 4)).build() +
                            PageBuilder().start(70).lost(9).record(0, good).build() +
                            PageBuilder().start(80).claim(0x7ffffff).build();
  const Trace trace(spec_of({pages}));
  CpuStream stream = trace.stream(0);
  RecordBlock block;
  EXPECT_FALSE(stream.fill(block));
  const auto count = [&stream](Counter counter) { return stream.counters().get(counter); };
  EXPECT_EQ(block.refs.size(), 6u);  // the short and the unknown ones too
  EXPECT_EQ(stream.counts().at(0), 4u);
  EXPECT_EQ(count(Counter::kUnknownEvents), 2u);  // one is too short to tell its id
  EXPECT_EQ(count(Counter::kTimeBackwards), 1u);
  EXPECT_EQ(count(Counter::kLostGaps), 1u);
  EXPECT_EQ(count(Counter::kBadPages), 1u);
  ASSERT_EQ(stream.lost().size(), 1u);
  EXPECT_EQ(stream.lost()[0].ts, 70);
  EXPECT_EQ(stream.lost()[0].count, 9u);
  ASSERT_TRUE(stream.damage());
  EXPECT_EQ(stream.damage()->slug, "bad-page");
}

// Page p has a record at each of its 10 ns: what lies around the range is not walked.
TEST(CpuStream, RangeSkipsPagesAndRecords) {
  constexpr std::uint32_t kPages = 2000;
  TraceSpec plain;
  plain.cpu_pages.emplace_back();
  for (std::uint32_t p = 0; p < kPages; ++p) {
    PageBuilder builder;
    builder.start(p * 10);
    for (std::uint32_t i = 0; i < 10; ++i) {
      builder.record(i == 0 ? 0 : 1, tiny_record(kOrder, 11, p * 10 + i));
    }
    plain.cpu_pages[0] += builder.build();
  }
  TraceSpec packed = plain;
  packed.compression = "zlib";
  for (const TraceSpec& spec : {plain, packed}) {
    const Trace trace(spec);
    for (const TimeRange range :
         {TimeRange{12345, 12351}, TimeRange{19999, INT64_MAX}, TimeRange{INT64_MIN, 1},
          TimeRange{12340, 12350}, TimeRange{20000, 30000}, TimeRange{-5, 3}}) {
      CpuStream stream = trace.stream(0, range);
      RecordBlock block;
      while (stream.fill(block)) {
      }
      std::vector<std::int64_t> times;
      for (const auto& ref : block.refs) times.push_back(ref.ts);
      std::vector<std::int64_t> wanted;
      for (std::int64_t ts = 0; ts < kPages * 10; ++ts) {
        if (range.holds(ts)) wanted.push_back(ts);
      }
      EXPECT_EQ(times, wanted) << range.first << ".." << range.end;
      EXPECT_EQ(stream.counts().empty() ? 0 : stream.counts().at(0), wanted.size());
      EXPECT_LE(stream.counters().get(Counter::kPages), 2u);
    }
  }
}

// The last record of a page has the time at which the next one begins, and the range.
TEST(CpuStream, RangeThatBeginsAtTheBorderOfTwoPages) {
  const std::string record = tiny_record(kOrder, 11, 0);
  const Trace trace(spec_of({PageBuilder().start(100).record(0, record).record(100, record).build() +
                             PageBuilder().start(200).record(0, record).record(50, record).build()}));
  CpuStream stream = trace.stream(0, {200, 250});
  RecordBlock block;
  while (stream.fill(block)) {
  }
  std::vector<std::int64_t> times;
  for (const auto& ref : block.refs) times.push_back(ref.ts);
  EXPECT_EQ(times, (std::vector<std::int64_t>{200, 200}));
}

// What was lost before a page is lost before its first record: outside of a range that begins
// behind that, though the page is read.
TEST(CpuStream, LostEventsOutsideOfTheRange) {
  const std::string record = tiny_record(kOrder, 11, 0);
  const Trace trace(
      spec_of({PageBuilder().start(70).lost(9).record(0, record).record(10, record).build()}));
  for (const std::int64_t first : {70, 71}) {
    CpuStream stream = trace.stream(0, {first, 100});
    RecordBlock block;
    while (stream.fill(block)) {
    }
    const std::size_t gaps = first == 70 ? 1 : 0;
    EXPECT_EQ(block.refs.size(), 1 + gaps);
    EXPECT_EQ(block.gaps.size(), gaps);
    EXPECT_EQ(stream.counters().get(Counter::kLostGaps), gaps);
    EXPECT_EQ(stream.lost().size(), gaps);
  }
}

// A page of another year: when it has been put right, no time goes back behind it.
TEST(CpuStream, StampsThatWerePutRightGoBackNoMore) {
  constexpr std::uint64_t kYear = 365ull * 86'400 * 1'000'000'000;
  const std::string record = tiny_record(kOrder, 11, 0);
  const auto three = [&](std::uint64_t ts) {
    return PageBuilder().start(ts).record(0, record).record(10, record).record(10, record).build();
  };
  const Trace trace(spec_of(
      {three(1000) + PageBuilder().start(kYear).record(0, record).build() + three(2000)}));
  CpuStream found = trace.stream(0);
  RecordBlock block;
  EXPECT_FALSE(found.fill(block));
  EXPECT_EQ(found.counters().get(Counter::kTimeBackwards), 1u);
  const StampPlan plan = judge_stamps(
      {found.stamps()}, {.overwritten = false, .place_of = [](const auto&, const auto&) {
                           return std::string("there");
                         }});
  ASSERT_EQ(plan.places, 1u);
  CpuStream fixed = trace.stream(0, {}, &plan.streams[0]);
  block.clear();
  EXPECT_FALSE(fixed.fill(block));
  std::vector<std::int64_t> times;
  for (const auto& ref : block.refs) times.push_back(ref.ts);
  EXPECT_EQ(times, (std::vector<std::int64_t>{1000, 1010, 1020, 1020, 2000, 2010, 2020}));
  EXPECT_EQ(fixed.counters().get(Counter::kBadStamps), 1u);
  EXPECT_EQ(fixed.counters().get(Counter::kTimeBackwards), 0u);
}

TEST(CpuStream, FirstRecord) {
  const Trace trace(spec_of({PageBuilder().start(70).build() + page({100, 200}, 0), ""}));
  EXPECT_EQ(trace.stream(0).first_record_ts(), 100);
  EXPECT_EQ(trace.stream(1).first_record_ts(), std::nullopt);
}

TEST(Merger, StopsWhenTheCallerHasEnough) {
  const Trace trace(spec_of({page({10, 30}, 0), page({20, 40}, 100)}));
  WorkerPool pool(2);
  Merger merger(trace.streams(4096), pool);
  std::vector<std::int64_t> times;
  EXPECT_FALSE(merger.run(
      [&times](const CpuStream&, const RecordRef& ref, const RecordBlock&) {
        times.push_back(ref.ts);
        return times.size() < 3;
      },
      [] {}));
  EXPECT_EQ(times, (std::vector<std::int64_t>{10, 20, 30}));
}

TEST(CpuStream, TscBecomesNanoseconds) {
  TraceSpec spec = spec_of({page({1000, 2000}, 0)});
  spec.options = {{14, testing::Bytes(kOrder).u32(3).u32(1).u64(0).str()}, {7, "100"}};
  const Trace trace(spec);
  CpuStream stream = trace.stream(0);
  RecordBlock block;
  EXPECT_FALSE(stream.fill(block));
  ASSERT_EQ(block.refs.size(), 2u);
  EXPECT_EQ(block.refs[0].ts, 1600);
  EXPECT_EQ(block.refs[1].ts, 3100);
}

}  // namespace
}  // namespace wbscope
