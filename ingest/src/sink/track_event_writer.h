// SPDX-License-Identifier: Apache-2.0
// TrackEventWriter: slices, instants and counters as a Perfetto trace.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace wbscope {

// The clock of the time stamps, in the kernel's words ("boot", "mono", ...).
// Clocks that Perfetto does not know are declared as a clock of their own
// that runs like BOOTTIME.
class TrackEventWriter {
 public:
  // Raises: Error (exit 5) when path cannot be written.
  TrackEventWriter(const std::string& path, std::string name, std::string_view clock,
                   std::int64_t first_ts);
  ~TrackEventWriter();
  TrackEventWriter(const TrackEventWriter&) = delete;
  TrackEventWriter& operator=(const TrackEventWriter&) = delete;

  // The id of the track at path, made with its parents when new. Parts are
  // divided by '/'; "\/" is a slash in a name. A unit makes it a counter.
  // rank orders it among its siblings; without one, first come first.
  [[nodiscard]] std::uint64_t track(std::string_view path, std::optional<std::string_view> unit,
                                    std::optional<std::int64_t> rank);

  // args: "key=value" pairs divided by '|'; a pair without a value is left out.
  void slice(std::uint64_t track, std::int64_t ts, std::int64_t dur, std::string_view name,
             std::string_view args);
  void instant(std::uint64_t track, std::int64_t ts, std::string_view name,
               std::string_view args);
  void counter(std::uint64_t track, std::int64_t ts, std::int64_t value);
  void counter(std::uint64_t track, std::int64_t ts, double value);

  // Writes what is left. Raises: Error (exit 5).
  void finish();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  struct Interned {
    std::map<std::string, std::uint64_t, std::less<>> ids;
  };
  // Makes an id for text, and says in the given packet what it stands for.
  std::uint64_t intern(Interned& table, std::uint32_t field, std::string_view text,
                       std::string& interned);
  void add_args(std::string_view args, std::string& event, std::string& interned);
  void put_event(std::int64_t ts, const std::string& event, const std::string& interned);
  void put_packet(const std::string& packet);
  void put_clock(std::string_view clock, std::int64_t first_ts);
  void flush();

  std::string name_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string pending_;
  std::map<std::string, std::uint64_t, std::less<>> tracks_;
  std::map<std::uint64_t, std::int64_t> next_rank_;
  Interned event_names_;
  Interned annotation_names_;
};

}  // namespace wbscope
