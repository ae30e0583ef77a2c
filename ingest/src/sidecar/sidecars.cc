// SPDX-License-Identifier: Apache-2.0
// Loads the /proc files and tool outputs of a run folder.
#include "sidecar/sidecars.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/input_file.h"
#include "base/utf8.h"
#include "sidecar/json_paths.h"
#include "sidecar/machine_text.h"
#include "sidecar/proc_text.h"
#include "sidecar/samples.h"
#include "sidecar/task_io.h"

namespace wbscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSidecarBytes = 16u << 20;
constexpr std::size_t kMaxPlainTextBytes = 1u << 20;
constexpr std::size_t kMostPathBytes = 1024;  // of a value in fio.json, in its row
constexpr const char* kBefore = "before";
constexpr const char* kAfter = "after";
constexpr const char* kSampled = "sampled";
// Facts of a recording, by the key that they get in table meta. A value of another type than
// the recorder writes is no fact.
constexpr const char* kRecordFacts = R"sql(
INSERT OR IGNORE INTO meta
SELECT f.key, CASE f.type WHEN 'array' THEN (
    SELECT substr(group_concat(p.value, '; '), 1, 2000)
    FROM json_each(f.document, f.path) AS p WHERE p.type = 'text'
  ) ELSE json_extract(f.document, f.path) END
FROM (
  SELECT w.key, w.type, w.path, d.document
  FROM (SELECT ?1 AS document) AS d
  CROSS JOIN (
    SELECT 'record_ended' AS key, 'text' AS type, '$.ended' AS path
    UNION ALL SELECT 'record_problems', 'array', '$.problems'
    UNION ALL SELECT 'command_exit_code', 'integer', '$.command_exit_code'
    UNION ALL SELECT 'command_signal', 'integer', '$.command_signal'
    UNION ALL SELECT 'record_started_ts', 'integer', '$.started_ts_ns'
    UNION ALL SELECT 'record_ended_ts', 'integer', '$.ended_ts_ns'
    UNION ALL SELECT 'hz', 'integer', '$.machine.hz'
  ) AS w
  WHERE json_type(d.document, w.path) = w.type
    AND json_extract(d.document, '$.schema') GLOB 'wbscope.record/*'
) AS f
WHERE f.type != 'array' OR json_array_length(f.document, f.path) > 0
)sql";

// Those that are read by name; other texts are only kept as they are.
bool is_known(const std::string& name) {
  static const std::set<std::string> kNames{
      "vmstat.before", "vmstat.after", "meminfo",  "meminfo.before", "meminfo.after", "zoneinfo",
      "zoneinfo.before", "zoneinfo.after", "ls-files", "cgroups", "fio.json", "uname",
      "vmstat.samples", "meminfo.samples", "zoneinfo.samples", "block.before", "block.after",
      "block.samples", "bdi.before", "bdi.after", "bdi.samples", "psi.before", "psi.after",
      "psi.samples", "wb.samples", "cgroup.samples", "task_io", "meta.json", "sysctls", "bdis",
      "mounts", "swaps", "stacks"};
  return kNames.contains(name);
}

const char* sample_name(const std::string& file) {
  if (file.ends_with(".samples")) return kSampled;
  return file.ends_with(".after") ? kAfter : kBefore;
}

class Loader {
 public:
  explicit Loader(Database& db)
      : db_(db),
        vmstat_(db, "INSERT INTO sidecar_vmstat VALUES (?, ?, ?, ?)"),
        meminfo_(db, "INSERT INTO sidecar_meminfo VALUES (?, ?, ?, ?, ?)"),
        zoneinfo_(db, "INSERT INTO sidecar_zoneinfo VALUES (?, ?, ?, ?, ?, ?)"),
        sample_(db, "INSERT INTO sidecar_sample VALUES (?, ?, ?, ?, ?, ?, ?)"),
        task_io_(db,
                 "INSERT INTO sidecar_task_io"
                 " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        files_(db, "INSERT INTO sidecar_ls_files VALUES (?, ?, ?)"),
        cgroup_(db, "INSERT OR REPLACE INTO cgroup VALUES (?, ?)"),
        fio_(db,
             "INSERT OR IGNORE INTO sidecar_fio SELECT fullkey, atom FROM json_tree(?)"
             " WHERE atom IS NOT NULL"),
        sysctl_(db, "INSERT INTO sidecar_sysctls VALUES (?, ?, ?)"),
        bdi_(db, "INSERT INTO sidecar_bdis VALUES (?, ?, ?, ?, ?)"),
        mount_(db, "INSERT INTO sidecar_mounts VALUES (?, ?, ?, ?, ?, ?)"),
        swap_(db, "INSERT INTO sidecar_swaps VALUES (?, ?, ?, ?, ?)"),
        stack_(db, "INSERT INTO sidecar_stacks VALUES (?, ?)"),
        text_(db, "INSERT OR REPLACE INTO sidecar_text VALUES (?, ?)"),
        loaded_(db, "INSERT OR REPLACE INTO sidecar_file VALUES (?, ?, ?, ?)"),
        record_facts_(db, kRecordFacts),
        json_valid_(db, "SELECT json_valid(?)") {}

  void load(const std::string& folder, const std::string& path, const std::string& name);
  void make_zones();
  [[nodiscard]] std::vector<Message>& warnings() noexcept { return warnings_; }

 private:
  TextProblems dispatch(const std::string& name, const std::string& text);
  TextProblems counters(const std::string& kind, const char* sample,
                        std::optional<std::int64_t> ts, std::string_view text);
  TextProblems objects(const std::string& kind, const char* sample,
                       std::optional<std::int64_t> ts, std::string_view text);
  TextProblems task_io(const std::string& text);
  TextProblems fio(const std::string& text);
  TextProblems machine(const std::string& name, std::string_view text);
  TextProblems record_facts(const std::string& text);
  bool is_json(const std::string& text);
  void note(const std::string& name, std::size_t bytes, const char* status,
            const std::string& message);

  Database& db_;
  Statement vmstat_, meminfo_, zoneinfo_, sample_, task_io_, files_, cgroup_, fio_;
  Statement sysctl_, bdi_, mount_, swap_, stack_, text_, loaded_, record_facts_, json_valid_;
  std::vector<Message> warnings_;
};

void bind_or_null(Statement& row, int index, std::optional<std::int64_t> value) {
  if (value) {
    row.bind(index, *value);
  } else {
    row.bind_null(index);
  }
}

// /proc/vmstat, meminfo and zoneinfo, read once.
TextProblems Loader::counters(const std::string& kind, const char* sample,
                              std::optional<std::int64_t> ts, std::string_view text) {
  if (kind == "vmstat") {
    return parse_vmstat(text, [&](const NamedValue& v) {
      vmstat_.bind_text(1, sample);
      bind_or_null(vmstat_, 2, ts);
      vmstat_.bind_text(3, v.name);
      vmstat_.bind(4, v.value);
      vmstat_.run();
    });
  }
  if (kind == "meminfo") {
    return parse_meminfo(text, [&](const NamedValue& v) {
      meminfo_.bind_text(1, sample);
      bind_or_null(meminfo_, 2, ts);
      meminfo_.bind_text(3, v.name);
      meminfo_.bind(4, v.value);
      meminfo_.bind_text(5, v.unit);
      meminfo_.run();
    });
  }
  if (kind != "zoneinfo") return objects(kind, sample, ts, text);
  return parse_zoneinfo(text, [&](const ZoneValue& v) {
    zoneinfo_.bind_text(1, sample);
    bind_or_null(zoneinfo_, 2, ts);
    zoneinfo_.bind(3, v.node);
    if (v.zone.empty()) {
      zoneinfo_.bind_null(4);
    } else {
      zoneinfo_.bind_text(4, v.zone);
    }
    zoneinfo_.bind_text(5, v.name);
    zoneinfo_.bind(6, v.value);
    zoneinfo_.run();
  });
}

// Statistics of each disk, backing device or resource, read once.
TextProblems Loader::objects(const std::string& kind, const char* sample,
                             std::optional<std::int64_t> ts, std::string_view text) {
  return each_object(text, [&](const TextPart& part) {
    const auto on_value = [&](const NamedValue& v) {
      sample_.bind_text(1, kind);
      sample_.bind_text(2, sample);
      bind_or_null(sample_, 3, ts);
      sample_.bind_text(4, part.object);
      sample_.bind_text(5, v.name);
      sample_.bind(6, v.value);
      sample_.bind_text(7, v.unit);
      sample_.run();
    };
    if (kind == "block") return parse_block_stat(part.text, on_value);
    if (kind == "psi") return parse_pressure(part.text, on_value);
    if (kind == "cgroup") {  // "INODE/FILE"
      const auto slash = part.object.find('/');
      const auto file = slash == std::string_view::npos ? part.object : part.object.substr(slash + 1);
      return parse_cgroup_file(file, part.text, on_value);
    }
    return parse_bdi_stats(part.text, on_value);
  });
}

TextProblems Loader::dispatch(const std::string& name, const std::string& text) {
  const char* sample = sample_name(name);
  const std::string kind = is_known(name) ? name.substr(0, name.find('.')) : std::string();
  static const std::set<std::string> kCounters{"vmstat", "meminfo", "zoneinfo",
                                               "block",  "bdi",     "psi"};
  // Of a Perfetto trace before and after are samples, too, which begin with their times.
  const bool is_timed = kCounters.contains(kind) && starts_with_time(text);
  if (is_timed || (is_known(name) && name.ends_with(".samples"))) {
    return each_sample(text, [&](const TextPart& part) {
      return counters(kind, sample, part.ts, part.text);
    });
  }
  if (kCounters.contains(kind)) return counters(kind, sample, std::nullopt, text);
  if (name == "ls-files") {
    return parse_ls(text, [&](const ListedFile& file) {
      if (file.inode) {
        files_.bind(1, *file.inode);
      } else {
        files_.bind_null(1);
      }
      files_.bind(2, file.bytes);
      files_.bind_text(3, file.name);
      files_.run();
    });
  }
  if (name == "cgroups") {
    return parse_inode_paths(text, [&](const NamedValue& v) {
      cgroup_.bind(1, v.value);
      cgroup_.bind_text(2, v.name);
      cgroup_.run();
    });
  }
  if (name == "task_io") return task_io(text);
  if (name == "fio.json") return fio(text);
  if (name == "meta.json" || text.size() <= kMaxPlainTextBytes) {
    text_.bind_text(1, name);
    text_.bind_text(2, text);
    text_.run();
  }
  if (name == "meta.json") return record_facts(text);
  return machine(name, text);
}

// What the recorder noted of the machine.
TextProblems Loader::machine(const std::string& name, std::string_view text) {
  if (name == "sysctls") {
    return parse_sysctls(text, [&](const Setting& setting) {
      sysctl_.bind_text(1, setting.name);
      sysctl_.bind_text(2, setting.value);
      bind_or_null(sysctl_, 3, setting.number);
      sysctl_.run();
    });
  }
  if (name == "bdis") {
    return parse_bdis(text, [&](const Mount& mount) {
      bdi_.bind(1, static_cast<std::int64_t>(mount.line));
      bdi_.bind_text(2, mount.device);
      bdi_.bind_text(3, mount.source);
      bdi_.bind_text(4, mount.mount);
      bdi_.bind_text(5, mount.type);
      bdi_.run();
    });
  }
  if (name == "mounts") {
    return parse_mounts(text, [&](const Mount& mount) {
      mount_.bind(1, static_cast<std::int64_t>(mount.line));
      mount_.bind_text(2, mount.device);
      mount_.bind_text(3, mount.mount);
      mount_.bind_text(4, mount.type);
      mount_.bind_text(5, mount.source);
      mount_.bind_text(6, mount.options);
      mount_.run();
    });
  }
  if (name == "swaps") {
    return parse_swaps(text, [&](const SwapArea& area) {
      swap_.bind_text(1, area.path);
      swap_.bind_text(2, area.type);
      swap_.bind(3, area.size_kib);
      swap_.bind(4, area.used_kib);
      swap_.bind(5, area.priority);
      swap_.run();
    });
  }
  if (name != "stacks") return {};
  return parse_stacks(text, [&](const Stacked& stacked) {
    stack_.bind_text(1, stacked.bdi);
    stack_.bind_text(2, stacked.disk);
    stack_.run();
  });
}

TextProblems Loader::task_io(const std::string& text) {
  return parse_task_io(text, [&](const TaskIo& thread) {
    task_io_.bind_text(1, thread.sample);
    constexpr std::size_t kBeforeName = 3;  // ts, tid and tgid
    for (std::size_t i = 0; i < thread.values.size(); ++i) {
      const auto column = i + 2 + (i < kBeforeName ? 0 : 1);
      bind_or_null(task_io_, static_cast<int>(column), thread.values[i]);
    }
    task_io_.bind_text(kBeforeName + 2, thread.comm);
    task_io_.run();
  });
}

// fio may print notes before the document.
TextProblems Loader::fio(const std::string& text) {
  TextProblems problems;
  const auto open = text.find('{');
  const std::string document = open == std::string::npos ? "" : text.substr(open);
  if (!is_json(document) || longest_path(document) > kMostPathBytes) {
    problems.add(1);
    return problems;
  }
  fio_.bind_text(1, document);
  fio_.run();
  return problems;
}

// How a recording ended, for whoever reads its numbers.
TextProblems Loader::record_facts(const std::string& text) {
  TextProblems problems;
  if (!is_json(text)) {
    problems.add(1);
    return problems;
  }
  record_facts_.bind_text(1, text);
  record_facts_.run();
  return problems;
}

bool Loader::is_json(const std::string& text) {
  json_valid_.bind_text(1, text);
  bool valid = false;
  while (json_valid_.step()) valid = json_valid_.integer(0) != 0;
  return valid;
}

void Loader::note(const std::string& name, std::size_t bytes, const char* status,
                  const std::string& message) {
  loaded_.bind_text(1, name);
  loaded_.bind(2, static_cast<std::int64_t>(bytes));
  loaded_.bind_text(3, status);
  if (message.empty()) {
    loaded_.bind_null(4);
    loaded_.run();
    return;
  }
  loaded_.bind_text(4, message);
  loaded_.run();
  warnings_.push_back({.slug = "sidecar-" + std::string(status),
                       .object = name,
                       .text = message,
                       .at = {},
                       .have = {},
                       .effect = "values that need it may be missing",
                       .fix = {}});
}

void Loader::load(const std::string& folder, const std::string& path, const std::string& name) {
  std::string text;
  try {
    text = replace_invalid_utf8(read_text_file(path, kMaxSidecarBytes, folder));
  } catch (const Error& error) {
    note(name, 0, "failed", error.message().text);
    return;
  }
  db_.note_read(text.size());
  const TextProblems problems = dispatch(name, text);
  if (problems.lines == 0) {
    note(name, text.size(), "loaded", {});
  } else {
    note(name, text.size(), "partial",
         std::to_string(problems.lines) + " lines not understood, the first is line " +
             std::to_string(problems.first_line));
  }
}

// Zones that have pages; their spans are what pfns are looked up in.
void Loader::make_zones() {
  db_.exec(R"sql(
INSERT INTO zone
SELECT node, zone,
  max(CASE WHEN name = 'start_pfn' THEN value END),
  max(CASE WHEN name = 'spanned' THEN value END),
  max(CASE WHEN name = 'present' THEN value END),
  max(CASE WHEN name = 'managed' THEN value END)
FROM sidecar_zoneinfo WHERE sample = 'before' AND zone IS NOT NULL
GROUP BY node, zone
HAVING max(CASE WHEN name = 'spanned' THEN value END) > 0
  AND max(CASE WHEN name = 'start_pfn' THEN value END) IS NOT NULL
ORDER BY 1, 3;
)sql");
}

}  // namespace

bool is_sidecar(const std::string& name) {
  // Texts that only Python and views give a meaning: measurements, and what the machine is.
  static const std::set<std::string> kTexts{
      "perf-stat.txt", "perf-stat.json", "time.txt", "ops.txt",  "vmstat.txt",
      "devices",       "session",        "recorder_tasks",       "kernel-command-line"};
  return is_known(name) || kTexts.contains(name);
}

std::vector<Message> load_sidecars(Database& db, const std::string& folder) {
  Loader loader(db);
  std::error_code problem;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    std::error_code ignored;
    const auto bytes = fs::file_size(path, ignored);
    const bool hidden = name.starts_with(".");
    const bool other = name.ends_with(".dat") || name.ends_with(".db") ||
                       name.ends_with(".pftrace") || name.ends_with(".perfetto-trace") ||
                       name.ends_with(".gz") || name.ends_with(".md") ||
                       name.find(".dat.") != std::string::npos ||  // of a killed recorder
                       bytes > kMaxPlainTextBytes;
    if (!is_known(name) && (hidden || other)) continue;
    loader.load(folder, path.string(), name);
  }
  loader.make_zones();
  return std::move(loader.warnings());
}

}  // namespace wbscope
