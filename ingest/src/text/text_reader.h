// SPDX-License-Identifier: Apache-2.0
// TextReader: the lines of a trace text, one after the other, into a sink.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/line_head.h"
#include "text/payload_reader.h"
#include "text/references.h"
#include "text/text_stamps.h"
#include "text/text_sink.h"

namespace wbscope {

// Who printed the text.
enum class TextStyle : std::uint8_t { kFtrace, kTraceCmd, kPerf, kLog };

// What a text says of itself and what became of its lines.
struct TextFacts {
  TextStyle style = TextStyle::kFtrace;
  std::string tracer;  // of "# tracer: ..."
  std::uint32_t cpus = 0;
  bool is_ticks = false;
  bool has_time = false;
  std::uint64_t lines = 0;
  std::uint64_t records = 0;
  std::uint64_t generic = 0;            // records without a reference that fits
  std::uint64_t continuations = 0;      // call chains, stack dumps
  std::uint64_t noise = 0;              // lines not understood that are no text either
  std::uint64_t first_noise = 0;        // line number
  std::uint64_t other = 0;              // lines of a kernel log that are no event
  std::uint64_t elided = 0;  // marks of lines left out: "...", "[...]", "<snip>"
  std::uint64_t not_understood = 0;
  std::uint64_t first_not_understood = 0;  // line number
  std::string not_understood_text;
  bool has_heading = false;
  bool is_last_misread = false;  // the last line was not understood
  bool is_last_cut = false;      // the last line has no newline, and not all of its record
  std::uint64_t time_backwards = 0;
  std::uint64_t overwritten = 0;  // of "# entries-in-buffer/entries-written: ..."
  std::int64_t last_ts = 0;
};

// Needs no database and no file; memory is bounded by the size of the sample.
class TextReader {
 public:
  // release: of the traced kernel, "" when it is not known.
  // stamps: puts times of records right, where they are wrong.
  TextReader(const References& references, TextSink& sink, std::string_view release,
             TextStamps* stamps = nullptr);

  // One line without its newline. The first lines wait until enough of them
  // are there to choose between references.
  // is_unended: it is the last one, and there was no newline. Most programs end
  // each line, so its record is looked at: it may have been cut.
  void line(std::string_view text, bool is_unended = false);
  void finish();

  [[nodiscard]] const TextFacts& facts() const noexcept { return facts_; }
  // Whether the sample makes a trace; later lines do not change that.
  [[nodiscard]] bool is_trace() const noexcept { return is_trace_; }
  [[nodiscard]] bool is_sampling() const noexcept { return is_sampling_; }

 private:
  void end_sample();
  void read_line(std::string_view text);
  void read_unended(std::string_view text);
  [[nodiscard]] bool is_whole(std::string_view text);
  bool read_heading(std::string_view text);
  bool read_log(std::string_view text);
  [[nodiscard]] std::optional<std::pair<std::string_view, LogLine>> log_event(
      std::string_view text) const;
  bool is_continuation(std::string_view text) const;
  bool extend_marker(std::string_view text);
  void end_marker();
  // False when the record is not one to be read.
  bool take_record(const LineHead& head);
  bool note_time(std::int64_t ts);
  [[nodiscard]] std::int64_t put_right(std::uint32_t cpu, std::int64_t ts);
  void misread(std::string_view text);

  PayloadReader payloads_;
  TextSink& sink_;
  std::vector<std::string> log_names_;  // "reclaim: "
  TextFacts facts_;
  bool is_sampling_ = true;
  std::string sample_;
  std::vector<std::size_t> sample_ends_;
  bool is_sample_unended_ = false;
  bool is_trace_ = false;
  const References& references_;
  // The line of a record that takes texts from user space, which may have
  // newlines: the lines behind it decide where it ends.
  std::string marker_;
  std::string marker_rest_;
  bool has_marker_ = false;
  bool is_marker_wanted_ = false;
  std::int64_t marker_ts_ = 0;
  TextStamps* stamps_;
  std::map<std::uint32_t, std::optional<std::uint64_t>> lost_;  // by CPU, until its next record
};

}  // namespace wbscope
