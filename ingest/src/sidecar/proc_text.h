// SPDX-License-Identifier: Apache-2.0
// Parsers of sidecar texts; each gives rows and counts lines it cannot read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wbscope {

// Of an object, device or zone, which stand in each of its rows; longer ones are no names.
inline constexpr std::size_t kMostNameBytes = 256;

// What a parser could not read.
struct TextProblems {
  std::uint64_t lines = 0;
  std::uint64_t first_line = 0;  // counted from 1

  void add(std::uint64_t line) {
    if (lines++ == 0) first_line = line;
  }
};

struct NamedValue {
  std::string_view name;
  std::int64_t value = 0;
  std::string_view unit;  // "kB" in meminfo, else empty
};
using OnNamedValue = std::function<void(const NamedValue&)>;

// /proc/vmstat: "name value" (man 5 proc).
TextProblems parse_vmstat(std::string_view text, const OnNamedValue& on_value);
// /proc/meminfo: "Name: value [kB]".
TextProblems parse_meminfo(std::string_view text, const OnNamedValue& on_value);

struct ZoneValue {
  std::int64_t node = 0;
  std::string_view zone;  // empty for values of the whole node
  std::string_view name;
  std::int64_t value = 0;
};
// /proc/zoneinfo, without the per-CPU page lists (mm/vmstat.c,
// zoneinfo_show_print()).
TextProblems parse_zoneinfo(std::string_view text,
                            const std::function<void(const ZoneValue&)>& on_value);

struct ListedFile {
  std::optional<std::int64_t> inode;
  std::int64_t bytes = 0;
  std::string_view name;
};
// Output of ls -l or ls -li; regular files only.
TextProblems parse_ls(std::string_view text, const std::function<void(const ListedFile&)>& on_file);

// Output of ls -id: "inode path".
TextProblems parse_inode_paths(std::string_view text, const OnNamedValue& on_value);

}  // namespace wbscope
