// SPDX-License-Identifier: Apache-2.0
// Parsers of sidecar texts.
#include "sidecar/proc_text.h"

#include "sidecar/lines.h"

namespace wbscope {
namespace {

std::string_view without_colon(std::string_view word) {
  if (word.ends_with(':')) word.remove_suffix(1);
  return word;
}

}  // namespace

TextProblems parse_vmstat(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (parts.empty()) return;
    const auto value = parts.size() == 2 ? integer(parts[1]) : std::nullopt;
    if (!value) return problems.add(number);
    on_value({.name = parts[0], .value = *value, .unit = {}});
  });
  return problems;
}

TextProblems parse_meminfo(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (parts.empty()) return;
    const auto value = parts.size() == 2 || parts.size() == 3 ? integer(parts[1]) : std::nullopt;
    if (!value || !parts[0].ends_with(':')) return problems.add(number);
    on_value({.name = without_colon(parts[0]),
              .value = *value,
              .unit = parts.size() == 3 ? parts[2] : std::string_view{}});
  });
  return problems;
}

TextProblems parse_zoneinfo(std::string_view text,
                            const std::function<void(const ZoneValue&)>& on_value) {
  TextProblems problems;
  ZoneValue row;
  bool in_zone = false;
  bool per_node = false;
  bool page_lists = false;
  std::string_view zone;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (parts.empty()) return;
    if (parts[0] == "Node" && parts.size() == 4) {  // "Node 0, zone  DMA32"
      auto node_text = parts[1];
      if (node_text.ends_with(',')) node_text.remove_suffix(1);
      const auto node = integer(node_text);
      in_zone = node && parts[2] == "zone" && parts[3].size() <= kMostNameBytes;
      if (!in_zone) return problems.add(number);
      row.node = *node;
      zone = parts[3];
      per_node = page_lists = false;
      return;
    }
    if (!in_zone) return problems.add(number);
    if (parts[0] == "per-node") {
      per_node = true;
      return;
    }
    if (parts[0] == "pages") per_node = false;  // "pages free N" opens the zone's own values
    if (parts[0] == "pagesets") {
      page_lists = true;
      return;
    }
    if (parts[0] == "node_unreclaimable:" || parts[0] == "start_pfn:") page_lists = false;
    if (page_lists || parts[0] == "protection:") return;
    const bool pages = parts[0] == "pages" && parts.size() == 3;
    const auto value = pages              ? integer(parts[2])
                       : parts.size() == 2 ? integer(parts[1])
                                           : std::nullopt;
    // Lines of later kernels that are no number ("page_size_bias" and such).
    if (!value) return problems.add(number);
    row.zone = per_node ? std::string_view{} : zone;
    row.name = without_colon(pages ? parts[1] : parts[0]);
    row.value = *value;
    on_value(row);
  });
  return problems;
}

TextProblems parse_ls(std::string_view text,
                      const std::function<void(const ListedFile&)>& on_file) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (parts.empty() || parts[0] == "total") return;
    ListedFile file;
    file.inode = integer(parts[0]);
    const std::size_t mode = file.inode ? 1 : 0;
    // mode links user group size month day time name
    if (parts.size() < mode + 9) return problems.add(number);
    if (parts[mode][0] != '-') return;
    const auto bytes = integer(parts[mode + 4]);
    if (!bytes) return problems.add(number);
    file.bytes = *bytes;
    const auto name_at = static_cast<std::size_t>(parts[mode + 8].data() - line.data());
    file.name = line.substr(name_at);
    on_file(file);
  });
  return problems;
}

TextProblems parse_inode_paths(std::string_view text, const OnNamedValue& on_value) {
  TextProblems problems;
  each_line(text, [&](std::uint64_t number, std::string_view line) {
    const auto parts = words(line);
    if (parts.empty()) return;
    const auto inode = parts.size() == 2 ? integer(parts[0]) : std::nullopt;
    if (!inode) return problems.add(number);
    on_value({.name = parts[1], .value = *inode, .unit = {}});
  });
  return problems;
}

}  // namespace wbscope
