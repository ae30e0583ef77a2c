// SPDX-License-Identifier: Apache-2.0
// Parsers of settings, mounts, devices and swap.
#include "sidecar/machine_text.h"

#include <charconv>
#include <cstddef>

#include "sidecar/lines.h"

namespace wbscope {
namespace {

// Readers of a database take rows of at most 1 MiB. What the kernel writes is
// far shorter: a path has 4,095 bytes at most, and options mostly one page.
constexpr std::size_t kMostLineBytes = 1u << 16;
constexpr std::size_t kMostPathBytes = 4096;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMostNameBytes &&
         text.find_first_of(" \t") == std::string_view::npos;
}

bool is_path(std::string_view text) { return !text.empty() && text.size() <= kMostPathBytes; }

bool is_count(std::string_view text) {
  return integer(text) && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_device(std::string_view text) {
  const auto colon = text.find(':');
  return colon != std::string_view::npos && is_count(text.substr(0, colon)) &&
         is_count(text.substr(colon + 1));
}

// Undoes fs/seq_file.c mangle_path(), which writes blanks, tabs, line feeds,
// backslashes and '#' so; any other byte is itself.
std::string unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    int code = 0;
    const auto digits = text.substr(1, 3);
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 8);
    const bool is_escape = text[0] == '\\' && digits.size() == 3 && problem == std::errc() &&
                           end == digits.data() + digits.size() && code > 0 && code < 0x80;
    out += is_escape ? static_cast<char>(code) : text[0];
    text.remove_prefix(is_escape ? 4 : 1);
  }
  return out;
}

// A NUL is of a file that was never written out.
template <typename Read>
TextProblems read_lines(std::string_view text, Read&& read) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) return;
    const bool is_line =
        line.size() <= kMostLineBytes && line.find('\0') == std::string_view::npos;
    if (!is_line || !read(number, line)) problems.add(number);
  });
  return problems;
}

// The source may be empty (mount(2) with an empty string).
bool read_mount(std::string_view line, Mount& row) {
  const bool has_ids = is_count(take_field(line)) && is_count(take_field(line));
  row.device = take_field(line);
  const auto root = take_field(line);
  row.mount = unescaped(take_field(line));
  if (!has_ids || !is_device(row.device) || root.empty() || !is_path(row.mount)) return false;
  auto field = take_field(line);  // options of the mount, then any number of tags
  while (field != "-" && !line.empty()) field = take_field(line);
  row.type = take_field(line);
  if (!is_name(row.type) || line.empty()) return false;
  row.source = unescaped(take_field(line));
  row.options = line;
  return row.source.size() <= kMostPathBytes;
}

}  // namespace

TextProblems parse_sysctls(std::string_view text,
                           const std::function<void(const Setting&)>& on_row) {
  return read_lines(text, [&](std::uint64_t, std::string_view line) {
    constexpr std::string_view kEquals = " =";
    const auto equals = line.find(kEquals);
    if (equals == std::string_view::npos) return false;
    Setting row;
    row.name = line.substr(0, equals);
    row.value = line.substr(equals + kEquals.size());
    if (!is_name(row.name)) return false;
    if (!row.value.empty()) {
      if (!row.value.starts_with(' ')) return false;
      row.value.remove_prefix(row.value.find_first_not_of(' '));
      row.number = integer(words(row.value)[0]);
    }
    on_row(row);
    return true;
  });
}

TextProblems parse_mounts(std::string_view text, const OnMount& on_row) {
  return read_lines(text, [&](std::uint64_t number, std::string_view line) {
    Mount row;
    row.line = number;
    if (!read_mount(line, row)) return false;
    on_row(row);
    return true;
  });
}

TextProblems parse_bdis(std::string_view text, const OnMount& on_row) {
  return read_lines(text, [&](std::uint64_t number, std::string_view line) {
    Mount row;
    row.line = number;
    row.device = take_field(line);
    row.source = unescaped(take_field(line));
    row.mount = unescaped(take_field(line));
    row.type = line;
    const bool is_row = is_name(row.device) && is_path(row.source) && is_path(row.mount) &&
                        is_name(row.type);
    if (is_row) on_row(row);
    return is_row;
  });
}

TextProblems parse_swaps(std::string_view text,
                         const std::function<void(const SwapArea&)>& on_row) {
  return read_lines(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (number == 1 && !parts.empty() && parts[0] == "Filename") return true;
    if (parts.size() != 5 || !is_name(parts[1])) return false;
    const auto priority = integer(parts[4]);
    if (!is_count(parts[2]) || !is_count(parts[3]) || !priority) return false;
    const SwapArea row{.path = unescaped(parts[0]),
                       .type = parts[1],
                       .size_kib = *integer(parts[2]),
                       .used_kib = *integer(parts[3]),
                       .priority = *priority};
    if (!is_path(row.path) || row.path[0] != '/') return false;
    on_row(row);
    return true;
  });
}

TextProblems parse_stacks(std::string_view text,
                          const std::function<void(const Stacked&)>& on_row) {
  return read_lines(text, [&](std::uint64_t, std::string_view line) {
    const auto parts = words(line);
    if (parts.size() != 2 || !is_name(parts[0]) || !is_device(parts[1])) return false;
    on_row({.bdi = parts[0], .disk = parts[1]});
    return true;
  });
}

}  // namespace wbscope
