// SPDX-License-Identifier: Apache-2.0
// wbscope-ingest: arguments, the one catch block, exit codes.
#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "base/interrupt.h"
#include "base/reporter.h"
#include "convert.h"
#include "ingest.h"
#include "load_plan.h"
#include "records.h"
#include "timeline.h"

namespace {

using wbscope::Error;
using wbscope::Exit;
using wbscope::Reporter;

constexpr const char* kUsage =
    "usage: wbscope-ingest sqlite SRC -o RUN.db [--events GLOB]... [--events-file FILE] [--all]\n"
    "                             [--time-range FROM..TO] [--limit N] [--force] [--threads N]\n"
    "                             [--formats FILE] [--plan FILE] [--no-unpack-limit]\n"
    "                             [--writer pages|sqlite] [--json-lines]\n"
    "       wbscope-ingest timeline RUN.db --setup FILE --view NAME... -o X.pftrace\n"
    "                             [--lane FILE --lane-view NAME...]... [--threads N]\n"
    "                             [--trace SRC --events GLOB... [--time-range FROM..TO]]\n"
    "                             [--root NAME] [--mark TEXT] [--shift NS] [--sequence N]\n"
    "                             [--force] [--json-lines]\n"
    "       wbscope-ingest records STREAM -o RUN.db --trace FILE [--folder RUN] [--force]\n"
    "                             [--plan FILE] [--no-unpack-limit] [--json-lines]\n"
    "       wbscope-ingest convert SRC... -o X.pftrace [--events GLOB]... [--compat]\n"
    "                             [--time-range FROM..TO] [--no-unpack-limit] [--force]\n"
    "                             [--threads N] [--json-lines]\n"
    "SRC is a trace.dat, the text of a trace or a run folder. GLOB matches \"system:name\" or\n"
    "\"name\", or is a system; without any, events are only counted. FROM and TO are ns of the\n"
    "trace clock, or +ns after the first record; each may be left out. --plan is JSON that\n"
    "says what tables have besides the fields: links to the row before, indexes.\n"
    "--no-unpack-limit reads a file of which far more comes out than is in it.\n"
    "--writer sqlite lets SQLite insert the\n"
    "rows of a trace.dat, which takes three times the processor time and gives equal tables.\n"
    "--root, --mark, --shift and --sequence put several timelines in one trace: its name, what\n"
    "the names of its groups begin with, what is added to each time, and a number for each\n"
    "(2, 3). Views of a --lane are asked for by a second\n"
    "thread, unless --threads is 1, on one connection of their own that each FILE adds to, in\n"
    "its turn. FILE of --setup and --lane may be -: stdin, where NULs stand between the\n"
    "scripts. The program \"wbscope\" is the front end to this one.\n";

[[noreturn]] void usage_error(const std::string& text,
                              const std::string& object = "wbscope-ingest") {
  throw Error(Exit::kUsage, {.slug = "usage",
                             .object = object,
                             .text = text,
                             .at = {},
                             .have = {},
                             .effect = {},
                             .fix = "wbscope-ingest --help"});
}

// Arguments, taken one after the other.
class Arguments {
 public:
  explicit Arguments(std::span<char*> args) : args_(args) {}
  [[nodiscard]] bool empty() const noexcept { return args_.empty(); }
  [[nodiscard]] std::string take() {
    std::string word = args_.front();
    args_ = args_.subspan(1);
    return word;
  }
  [[nodiscard]] std::string value_of(const std::string& option) {
    if (args_.empty()) usage_error(option + " needs a value");
    return take();
  }

 private:
  std::span<char*> args_;
};

// fnmatch() takes a "[" without its "]" for itself: no event has one in its name.
std::string checked_glob(const std::string& glob) {
  const auto wrong = [&glob] {
    usage_error("found \"" + glob + "\", wanted a pattern such as \"sched:*\"", "--events");
  };
  if (glob.empty()) wrong();
  for (std::size_t at = 0; (at = glob.find('[', at)) != std::string::npos; ++at) {
    std::size_t first = at + 1;  // a "]" there is a member
    if (first < glob.size() && (glob[first] == '!' || glob[first] == '^')) ++first;
    at = glob.find(']', first + 1);
    if (at == std::string::npos) wrong();
  }
  return glob;
}

void read_globs(const std::string& path, std::vector<std::string>& globs) {
  std::ifstream in(path);
  if (!in) usage_error("--events-file: cannot open " + path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '#') globs.push_back(line);
  }
}

// The whole text as a number.
template <typename T>
std::optional<T> number_in(std::string_view text) {
  T value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

unsigned parse_threads(const std::string& text) {
  const auto threads = number_in<unsigned>(text);
  if (!threads || *threads < 1 || *threads > 1024) {
    usage_error("--threads: found \"" + text + "\", wanted a number from 1 to 1024");
  }
  return *threads;
}

bool is_sqlite_writer(const std::string& text) {
  if (text != "pages" && text != "sqlite") {
    usage_error("found \"" + text + "\", wanted pages or sqlite", "--writer");
  }
  return text == "sqlite";
}

std::uint64_t parse_limit(const std::string& text) {
  constexpr std::uint64_t kMostRows = INT64_MAX;  // meta.loaded_limit is an SQLite integer
  const auto limit = number_in<std::uint64_t>(text);
  if (!limit || *limit < 1 || *limit > kMostRows) {
    usage_error("found \"" + text + "\", wanted 1 to " + std::to_string(kMostRows), "--limit");
  }
  return *limit;
}

template <typename T>
T whole_number(const std::string& option, const std::string& text) {
  const auto value = number_in<T>(text);
  if (!value) usage_error("found \"" + text + "\", wanted a whole number", option);
  return *value;
}

wbscope::LoadPlan read_plan(const std::string& path) {
  constexpr std::size_t kMostBytes = 1 << 20;
  return wbscope::parse_load_plan(wbscope::read_text_file(path, kMostBytes), path);
}

void parse_time_range(const std::string& text, wbscope::TimeBounds& bounds) {
  constexpr std::string_view kDots = "..";
  const auto wrong = [&text] {
    usage_error("--time-range: found \"" + text +
                "\", wanted FROM..TO, each ns or +ns, one of them may be left out");
  };
  const auto dots = text.find(kDots);
  if (dots == std::string::npos || text == kDots) wrong();
  const auto bound = [&](std::string_view word) -> std::optional<wbscope::TimeBound> {
    if (word.empty()) return std::nullopt;
    const bool after_start = word.starts_with('+');
    if (after_start) word.remove_prefix(1);
    const auto ns = number_in<std::int64_t>(word);
    if (!ns || (after_start && *ns < 0)) wrong();
    return wbscope::TimeBound{.ns = *ns, .after_start = after_start};
  };
  bounds.from = bound(std::string_view(text).substr(0, dots));
  bounds.to = bound(std::string_view(text).substr(dots + kDots.size()));
}

// Takes a positional argument or an option that both jobs have.
bool take_common(const std::string& word, Arguments& args, std::string& source,
                 std::string& output, bool& force) {
  if (word == "-o" || word == "--output") {
    output = args.value_of(word);
  } else if (word == "--force") {
    force = true;
  } else if (word == "--json-lines") {
    // read before the jobs are
  } else if (!word.starts_with("-") && source.empty()) {
    source = word;
  } else {
    return false;
  }
  return true;
}

void require(const std::string& source, const std::string& output) {
  if (source.empty()) usage_error("found no source, wanted one");
  if (output == "-") usage_error("found \"-\", wanted a file: the output is no stream", "-o");
  if (output.empty()) usage_error("found no -o, wanted the name of the output");
}

void run_sqlite(Arguments args, const Reporter& reporter) {
  wbscope::IngestOptions options;
  while (!args.empty()) {
    const std::string word = args.take();
    if (word == "--events") {
      options.asked.push_back(checked_glob(args.value_of(word)));
      options.globs.push_back(options.asked.back());
    } else if (word == "--events-file") {
      read_globs(args.value_of(word), options.globs);
    } else if (word == "--formats") {
      options.formats = args.value_of(word);
    } else if (word == "--plan") {
      options.plan = read_plan(args.value_of(word));
    } else if (word == "--all") {
      options.all = true;
    } else if (word == "--no-unpack-limit") {
      options.no_unpack_limit = true;
    } else if (word == "--writer") {
      options.inserts = is_sqlite_writer(args.value_of(word));
    } else if (word == "--threads") {
      options.threads = parse_threads(args.value_of(word));
    } else if (word == "--limit") {
      options.limit = parse_limit(args.value_of(word));
    } else if (word == "--time-range") {
      parse_time_range(args.value_of(word), options);
    } else if (word == "-") {
      usage_error("found \"-\", wanted a file: a trace is not read from stdin", "SRC");
    } else if (!take_common(word, args, options.source, options.output, options.force)) {
      usage_error("found argument \"" + word + "\" that sqlite does not take");
    }
  }
  require(options.source, options.output);
  wbscope::ingest_to_sqlite(options, reporter);
}

void run_timeline(Arguments args, const Reporter& reporter) {
  wbscope::TimelineOptions options;
  while (!args.empty()) {
    const std::string word = args.take();
    if (word == "--setup") {
      options.setup_path = args.value_of(word);
    } else if (word == "--trace") {
      options.trace = args.value_of(word);
    } else if (word == "--events") {
      options.globs.push_back(checked_glob(args.value_of(word)));
    } else if (word == "--time-range") {
      parse_time_range(args.value_of(word), options.events_part);
    } else if (word == "--view") {
      options.views.push_back(args.value_of(word));
    } else if (word == "--lane") {
      options.lanes.push_back({.setup_path = args.value_of(word), .views = {}});
    } else if (word == "--lane-view") {
      if (options.lanes.empty()) usage_error("found --lane-view, wanted --lane FILE before it");
      options.lanes.back().views.push_back(args.value_of(word));
    } else if (word == "--threads") {
      options.threads = parse_threads(args.value_of(word));
    } else if (word == "--root") {
      options.root = args.value_of(word);
    } else if (word == "--mark") {
      options.mark = args.value_of(word);
    } else if (word == "--shift") {
      options.shift_ns = whole_number<std::int64_t>(word, args.value_of(word));
    } else if (word == "--sequence") {
      options.sequence = whole_number<std::uint32_t>(word, args.value_of(word));
    } else if (!take_common(word, args, options.database, options.output, options.force)) {
      usage_error("found argument \"" + word + "\" that timeline does not take");
    }
  }
  require(options.database, options.output);
  if (options.views.empty()) usage_error("found no --view, wanted at least one");
  wbscope::export_timeline(options, reporter);
}

void run_records(Arguments args, const Reporter& reporter) {
  wbscope::RecordsOptions options;
  while (!args.empty()) {
    const std::string word = args.take();
    if (word == "--trace") {
      options.trace = args.value_of(word);
    } else if (word == "--no-unpack-limit") {
      options.no_unpack_limit = true;
    } else if (word == "--folder") {
      options.folder = args.value_of(word);
    } else if (word == "--plan") {
      options.plan = read_plan(args.value_of(word));
    } else if (word == "-") {
      options.stream = word;
    } else if (!take_common(word, args, options.stream, options.output, options.force)) {
      usage_error("found argument \"" + word + "\" that records does not take");
    }
  }
  require(options.stream, options.output);
  if (options.trace.empty()) usage_error("found no --trace, wanted the file the records are of");
  wbscope::load_records(options, reporter);
}

void run_convert(Arguments args, const Reporter& reporter) {
  wbscope::ConvertOptions options;
  while (!args.empty()) {
    const std::string word = args.take();
    std::string source;  // of several
    if (word == "--events") {
      options.globs.push_back(checked_glob(args.value_of(word)));
    } else if (word == "--time-range") {
      parse_time_range(args.value_of(word), options);
    } else if (word == "--compat") {
      options.compat = true;
    } else if (word == "--no-unpack-limit") {
      options.no_unpack_limit = true;
    } else if (word == "--threads") {
      options.threads = parse_threads(args.value_of(word));
    } else if (word == "-") {
      usage_error("found \"-\", wanted a file: a trace is not read from stdin", "SRC");
    } else if (!take_common(word, args, source, options.output, options.force)) {
      usage_error("found argument \"" + word + "\" that convert does not take");
    }
    if (!source.empty()) options.sources.push_back(source);
  }
  require(options.sources.empty() ? "" : options.sources.front(), options.output);
  wbscope::convert_to_perfetto(options, reporter);
}

int run(std::span<char*> argv, const Reporter& reporter) {
  Arguments args(argv);
  if (args.empty()) usage_error("found no job, wanted sqlite, timeline, records or convert");
  const std::string job = args.take();
  if (job == "--help" || job == "-h") {
    std::fputs(kUsage, stdout);
  } else if (job == "--version") {
    std::printf("wbscope-ingest %s (SQLite %s)\n", WBSCOPE_VERSION, sqlite3_libversion());
  } else if (job == "sqlite") {
    run_sqlite(args, reporter);
  } else if (job == "timeline") {
    run_timeline(args, reporter);
  } else if (job == "records") {
    run_records(args, reporter);
  } else if (job == "convert") {
    run_convert(args, reporter);
  } else {
    usage_error("found job \"" + job + "\", wanted sqlite, timeline, records or convert");
  }
  return static_cast<int>(Exit::kDone);
}

wbscope::Message environment_message(const char* slug, const char* text, const char* fix) {
  return {.slug = slug,
          .object = "wbscope-ingest",
          .text = text,
          .at = {},
          .have = {},
          .effect = "nothing was written",
          .fix = fix};
}

}  // namespace

int main(int argc, char** argv) {
  const std::span<char*> words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  bool json_lines = false;
  for (const char* word : words) json_lines |= std::string_view(word) == "--json-lines";
  const Reporter reporter(json_lines);
  wbscope::open_standard_streams();
  wbscope::catch_interrupts();
  try {
    return run(words, reporter);
  } catch (const Error& error) {
    reporter.error(error.message());
    return static_cast<int>(error.exit_code());
  } catch (const std::bad_alloc&) {
    reporter.error(environment_message("out-of-memory", "found no memory left",
                                       "free memory or raise the limit (ulimit -v)"));
    return static_cast<int>(Exit::kEnvironment);
  } catch (const std::system_error& error) {  // no thread to be had
    reporter.error(environment_message("no-thread", error.what(),
                                       "free processes or raise the limit (ulimit -u)"));
    return static_cast<int>(Exit::kEnvironment);
  } catch (const std::exception& error) {
    reporter.error({.slug = "bug",
                    .object = "wbscope-ingest",
                    .text = error.what(),
                    .at = {},
                    .have = {},
                    .effect = "nothing was written",
                    .fix = "report it with the command and, if you can, the trace"});
    return static_cast<int>(Exit::kBug);
  }
}
