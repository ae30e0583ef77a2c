// SPDX-License-Identifier: Apache-2.0
// Print formats that text is read back by.
#include "text/references.h"

#include <algorithm>

namespace wbscope {
namespace {

// Kernel releases in order: numbers are compared as numbers.
bool newer(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const auto digits = [](std::string_view text) {
      const auto end = text.find_first_not_of("0123456789");
      return end == std::string_view::npos ? text.size() : end;
    };
    const std::size_t na = digits(a);
    const std::size_t nb = digits(b);
    if (na > 0 && nb > 0) {
      if (na != nb) return na > nb;
      const int order = a.substr(0, na).compare(b.substr(0, nb));
      if (order != 0) return order > 0;
      a.remove_prefix(na);
      b.remove_prefix(nb);
    } else {
      if (a.front() != b.front()) return a.front() > b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() > b.size();
}

}  // namespace

Reference::LastField Reference::last_field() const {
  // "\tfield:char rwbs[8];\toffset:32;...", "\tfield:__data_loc char[] cmd;..."
  constexpr std::string_view kField = "field:";
  const auto begin = text_.rfind(kField);
  if (begin == std::string::npos) return {};
  std::string_view declared = text_;
  declared.remove_prefix(begin + kField.size());
  declared = declared.substr(0, declared.find(';'));
  const bool is_text = declared.find("char") != std::string_view::npos &&
                       declared.find_first_of("[*") != std::string_view::npos;
  if (declared.ends_with(']')) declared = declared.substr(0, declared.rfind('['));
  return {declared.substr(declared.find_last_of(" *") + 1), is_text};
}

const PrintTemplate* Reference::print() const {
  if (!compiled_) {
    compiled_ = true;
    print_ = compile_print_template(system_, text_);
  }
  return print_ ? &*print_ : nullptr;
}

References::References(std::string_view formats) {
  std::string kernel;
  std::string system;
  bool by_hand = false;
  std::string text;
  const auto end_of_format = [&] {
    if (!text.empty()) add(kernel, by_hand, system, text);
    text.clear();
  };
  while (!formats.empty()) {
    const auto end = formats.find('\n');
    const std::string_view line = formats.substr(0, end);
    const auto value_of = [&line](std::string_view key) -> std::optional<std::string> {
      if (!line.starts_with(key)) return std::nullopt;
      return std::string(line.substr(key.size()));
    };
    if (const auto named = value_of("# kernel ")) {
      end_of_format();
      kernel = *named;
      by_hand = false;
    } else if (const auto written = value_of("# text ")) {
      end_of_format();
      kernel = *written;
      by_hand = true;
    } else if (const auto of = value_of("# system ")) {
      end_of_format();
      system = *of;
    } else if (!line.starts_with('#')) {
      if (line.starts_with("name:")) end_of_format();
      text.append(line).append("\n");
    }
    if (end == std::string_view::npos) break;
    formats.remove_prefix(end + 1);
  }
  end_of_format();
  for (auto& [name, references] : by_name_) {
    std::stable_sort(references.begin(), references.end(), [](const auto& a, const auto& b) {
      return newer(a->kernel(), b->kernel());
    });
  }
}

void References::add(std::string kernel, bool by_hand, std::string system,
                     std::string_view text) {
  constexpr std::string_view kName = "name:";
  const auto at = text.find(kName);
  if (at == std::string_view::npos) return;
  std::string_view name = text.substr(at + kName.size());
  name = name.substr(0, name.find('\n'));
  const auto first = name.find_first_not_of(" \t");
  if (first == std::string_view::npos) return;
  name = name.substr(first, name.find_last_not_of(" \t\r") - first + 1);
  by_name_[std::string(name)].push_back(std::make_unique<Reference>(
      std::move(kernel), by_hand, std::move(system), std::string(name), std::string(text)));
}

std::vector<const Reference*> References::find(std::string_view system,
                                               std::string_view name) const {
  std::vector<const Reference*> out;
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) return out;
  for (const auto& reference : found->second) {
    if (system.empty() || reference->system() == system) out.push_back(reference.get());
  }
  return out;
}

std::vector<std::string> References::names_of(std::string_view system) const {
  std::vector<std::string> out;
  for (const auto& [name, references] : by_name_) {
    for (const auto& reference : references) {
      if (reference->system() == system) {
        out.push_back(name);
        break;
      }
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace wbscope
