// SPDX-License-Identifier: Apache-2.0
// The job "convert": every event of traces as a Perfetto trace.
#include "convert.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>
#include <thread>

#include "base/interrupt.h"
#include "base/output_file.h"
#include "damage.h"
#include "event_choice.h"
#include "ingest_text.h"
#include "perfetto/packet_output.h"
#include "perfetto/trace_writer.h"
#include "trace_source.h"
#include "tracedat/clock_correction.h"

namespace wbscope {
namespace {

constexpr auto kProgressEvery = std::chrono::milliseconds(200);

// Text has no records with types; Perfetto reads it itself.
void refuse_text(const std::string& source) {
  const InputFile file(trace_path(source));
  if (!is_text(file)) return;
  throw Error(Exit::kInput, {.slug = "text-trace",
                             .object = file.path(),
                             .text = "found a text, wanted a trace.dat",
                             .at = {},
                             .have = {},
                             .effect = "nothing was written",
                             .fix = "when it is the kernel's file trace, open it as it is at"
                                    " https://ui.perfetto.dev"});
}

void warn(const Reporter& reporter, const std::string& object, const char* slug,
          const std::string& text, const std::string& effect) {
  reporter.warning({.slug = slug,
                    .object = object,
                    .text = text,
                    .at = {},
                    .have = {},
                    .effect = effect,
                    .fix = {}});
}

void warn_of_losses(const Reporter& reporter, const std::string& object,
                    const TraceWritten& written) {
  if (written.lost_gaps > 0) {
    warn(reporter, object, "lost-events",
         "the kernel's buffer overran at " + std::to_string(written.lost_gaps) +
             " places; at least " + std::to_string(written.lost_known) + " events are missing",
         "what follows each gap is marked; tasks and waits around it may be shown too long");
  }
  if (written.before_zero > 0) {
    warn(reporter, object, "times-before-zero",
         std::to_string(written.before_zero) + " events have a time before 0",
         "they were left out: Perfetto has no such times");
  }
  if (written.on_high_cpus > 0) {
    warn(reporter, object, "too-many-cpus",
         std::to_string(written.on_high_cpus) + " events are of CPUs from 1024 on",
         "they were left out: Perfetto refuses a trace that has such CPUs");
  }
}

void warn_of_fields(const Reporter& reporter, const TraceSource& source,
                    const std::map<std::string, std::uint64_t>& left_out) {
  if (left_out.empty()) return;
  std::string fields;
  for (const auto& [field, count] : left_out) fields += (fields.empty() ? "" : ", ") + field;
  warn(reporter, source.file.path(), "fields-left-out",
       "Perfetto's messages have no place for " + fields,
       "these fields were left out; the events fill Perfetto's tables");
}

void warn_of_clock(const Reporter& reporter, const TraceSource& source) {
  const std::string& clock = source.info.clock;
  if (!counts_ticks(source.info, clock)) return;
  warn(reporter, source.file.path(), "clock-in-ticks", "clock " + clock + " does not count ns",
       "each of its ticks is shown as 1 ns");
}

// A guest's clock is put on the host's by what its own file says.
void warn_of_guests(const Reporter& reporter, const TraceWriter& writer) {
  const auto& sources = writer.sources();
  for (std::size_t s = 1; s < sources.size(); ++s) {
    const TraceInfo& info = sources[s]->info;
    const TraceInfo& host = sources[0]->info;
    const bool is_guest = std::any_of(host.guests.begin(), host.guests.end(), [&](const auto& each) {
      return each.trace_id == info.trace_id;
    });
    const bool knows_host = host.trace_id != 0 && info.shift.peer_trace_id == host.trace_id;
    if (!info.shift.cpus.empty() && (is_guest || knows_host)) continue;
    warn(reporter, sources[s]->file.path(), "clocks-not-related",
         "the file does not say how its clock runs beside that of " + sources[0]->file.path(),
         "times of both are shown on one axis as they are");
  }
}

}  // namespace

void convert_to_perfetto(const ConvertOptions& options, const Reporter& reporter) {
  for (const auto& source : options.sources) refuse_text(source);
  OutputFile output(options.output, options.force);
  TraceWriter writer(open_sources(options.sources));
  if (options.no_unpack_limit) {
    for (const auto& source : writer.sources()) source->info.budget->lift();
  }
  const std::string& first = writer.sources().front()->file.path();
  WriteBudget budget(first, lift_limit(first));
  budget.add_read(writer.bytes());
  if (options.no_unpack_limit) budget.lift();
  PacketOutput packets(output.temp_path(), output.path(), &budget);
  const unsigned threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<EventName> names;
  for (const auto& source : writer.sources()) {
    for (const auto& event : source->catalog.events) names.push_back({event.system, event.name});
  }
  require_matches(options.globs, names);
  const EventChoice choice(options.globs, options.globs.empty());
  auto last_report = std::chrono::steady_clock::now();
  const TraceWritten written =
      writer.write(packets, {.choice = choice, .bounds = options, .compat = options.compat,
                             .threads = threads}, [&](std::uint64_t done) {
        throw_if_interrupted();
        const auto now = std::chrono::steady_clock::now();
        if (now - last_report < kProgressEvery) return;
        last_report = now;
        reporter.progress(done, writer.bytes());
      });
  bool damaged = false;
  for (std::size_t s = 0; s < written.damage.size(); ++s) {
    damaged |= !written.damage[s].empty();
    if (written.events == 0 && !written.damage[s].empty()) {
      throw_nothing_readable(writer.sources()[s]->file, writer.sources()[s]->info);
    }
  }
  throw_if_interrupted();
  packets.finish();
  output.commit();
  warn_of_losses(reporter, first, written);
  for (std::size_t s = 0; s < written.damage.size(); ++s) {
    warn_of_fields(reporter, *writer.sources()[s], written.left_out[s]);
    warn_of_damage(reporter, writer.sources()[s]->file, written.damage[s], written.events, "");
    warn_of_clock(reporter, *writer.sources()[s]);
  }
  warn_of_guests(reporter, writer);
  reporter.done(output.path(), written.events, written.written, damaged);
}

}  // namespace wbscope
