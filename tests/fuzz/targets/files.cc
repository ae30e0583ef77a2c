// SPDX-License-Identifier: Apache-2.0
// Sidecar texts, and whole trace files from source to database or Perfetto trace.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/error.h"
#include "base/reporter.h"
#include "convert.h"
#include "ingest.h"
#include "sidecar/machine_text.h"
#include "sidecar/proc_text.h"
#include "sidecar/sidecars.h"
#include "sink/database.h"
#include "sink/run_writer.h"
#include "scratch.h"
#include "targets.h"

namespace wbscope::fuzz {
namespace {

namespace fs = std::filesystem;

void write_file(const fs::path& path, Bytes bytes) {
  const auto text = as_text(bytes);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

// Names and units must be parts of the text that was parsed.
bool lies_in(std::string_view part, std::string_view text) {
  return part.empty() ||
         (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

void parse(std::uint8_t which, std::string_view text) {
  const auto on_value = [text](const NamedValue& v) {
    require(lies_in(v.name, text) && lies_in(v.unit, text));
  };
  const auto on_mount = [text](const Mount& m) {
    require(lies_in(m.device, text) && lies_in(m.type, text) && lies_in(m.options, text));
  };
  TextProblems problems;
  switch (which % 10) {
    case 0:
      problems = parse_vmstat(text, on_value);
      break;
    case 1:
      problems = parse_meminfo(text, on_value);
      break;
    case 2:
      problems = parse_zoneinfo(text, [text](const ZoneValue& v) {
        require(lies_in(v.zone, text) && lies_in(v.name, text));
      });
      break;
    case 3:
      problems = parse_ls(text, [text](const ListedFile& f) { require(lies_in(f.name, text)); });
      break;
    case 4:
      problems = parse_inode_paths(text, on_value);
      break;
    case 5:
      problems = parse_sysctls(text, [text](const Setting& s) {
        require(lies_in(s.name, text) && lies_in(s.value, text));
      });
      break;
    case 6:
      problems = parse_mounts(text, on_mount);
      break;
    case 7:
      problems = parse_bdis(text, on_mount);
      break;
    case 8:
      problems = parse_swaps(text, [text](const SwapArea& a) { require(lies_in(a.type, text)); });
      break;
    default:
      problems = parse_stacks(text, [text](const Stacked& s) {
        require(lies_in(s.bdi, text) && lies_in(s.disk, text));
      });
      break;
  }
  require((problems.lines == 0) == (problems.first_line == 0));
}

void load(std::uint8_t which, Bytes input) {
  static constexpr std::array<const char*, 24> kNames{
      "vmstat.before",  "meminfo",         "zoneinfo",         "ls-files",
      "cgroups",        "fio.json",        "uname",            "other",
      "vmstat.samples", "meminfo.samples", "zoneinfo.samples", "block.samples",
      "bdi.samples",    "psi.samples",     "block.before",     "psi.after",
      "task_io",        "wb.samples",      "cgroup.samples",   "sysctls",
      "mounts",         "bdis",            "swaps",            "stacks"};
  static const Scratch scratch;
  static Database db(":memory:", "fuzz", Database::Mode::kCreate);
  static const RunWriter tables(db);
  const fs::path file = scratch.path() / kNames[which % kNames.size()];
  write_file(file, input);
  db.exec("BEGIN");
  (void)load_sidecars(db, scratch.path().string());
  db.exec("ROLLBACK");
  fs::remove(file);
}

bool is_whole(const fs::path& database) {
  Database db(database.string(), "fuzz", Database::Mode::kReadOnly);
  Statement check(db, "PRAGMA quick_check");
  return check.step() && check.text(0) == "ok";
}

// Goes through all fields of a message; what does not parse throws.
void read_all(protozero::pbf_reader message) {
  while (message.next()) message.skip();
}

// A time, a thread and one message each.
void check_event(protozero::pbf_reader event) {
  require(event.next(1, protozero::pbf_wire_type::varint));
  require(static_cast<std::int64_t>(event.get_uint64()) >= 0);
  require(event.next(2, protozero::pbf_wire_type::varint));
  event.skip();
  require(event.next() && event.wire_type() == protozero::pbf_wire_type::length_delimited);
  read_all(event.get_message());
  require(!event.next());
}

void check_packets(const fs::path& trace) {
  std::ifstream in(trace, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  protozero::pbf_reader packets(bytes);
  while (packets.next()) {
    require(packets.tag() == 1);
    protozero::pbf_reader packet = packets.get_message();
    while (packet.next()) {
      if (packet.tag() != 1) {
        packet.skip();
        continue;
      }
      protozero::pbf_reader bundle = packet.get_message();
      while (bundle.next()) {
        if (bundle.tag() == 2) {
          check_event(bundle.get_message());
        } else {
          bundle.skip();
        }
      }
    }
  }
}

}  // namespace

// Input: a byte of choices, then a sidecar.
void sidecars(Bytes input) {
  const std::uint8_t choices = take_byte(input);
  if ((choices & 0x80) != 0) return load(choices & 0x7f, input);
  parse(choices, as_text(input));
}

// Input: a trace file. Every event is loaded; the end is a whole database or
// an error of exit code 3, and nothing else is left.
void whole(Bytes input) {
  static const Scratch scratch;
  static const fs::path output = scratch.path() / "run.db";
  static const fs::path source = scratch.path() / "trace.dat";
  write_file(source, input);
  IngestOptions options;
  options.source = source.string();
  options.output = output.string();
  options.all = true;
  options.force = true;
  options.threads = 1;
  bool done = false;
  try {
    ingest_to_sqlite(options, Reporter(true));
    done = true;
  } catch (const Error& error) {
    require(error.exit_code() == Exit::kInput);
    require(!error.message().slug.empty() && !error.message().text.empty());
  }
  require(fs::exists(output) == done);
  if (done) require(is_whole(output));
  fs::remove(output);
  require(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()) == 1);
}

// Input: a byte of choices, then a trace file. The end is a Perfetto trace whose
// every message parses, or an error of exit code 3, and nothing else is left.
void converted(Bytes input) {
  static const Scratch scratch;
  static const fs::path output = scratch.path() / "x.pftrace";
  static const fs::path source = scratch.path() / "trace.dat";
  const std::uint8_t choices = take_byte(input);
  write_file(source, input);
  ConvertOptions options;
  options.sources.assign((choices & 2) != 0 ? 2 : 1, source.string());
  options.output = output.string();
  options.compat = (choices & 1) != 0;
  options.force = true;
  options.threads = 1;
  bool done = false;
  try {
    convert_to_perfetto(options, Reporter(true));
    done = true;
  } catch (const Error& error) {
    require(error.exit_code() == Exit::kInput);
    require(!error.message().slug.empty() && !error.message().text.empty());
  }
  require(fs::exists(output) == done);
  if (done) check_packets(output);
  fs::remove(output);
  require(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()) == 1);
}

}  // namespace wbscope::fuzz
