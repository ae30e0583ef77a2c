// SPDX-License-Identifier: Apache-2.0
// What a print format does with its fields.
#include "format/print_uses.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace wbscope {
namespace {

constexpr std::size_t kMaxArguments = 256;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The word at the start of text.
std::string_view leading_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(0, end);
}

// Each NAME of "helper(NAME)" in text.
void add_arguments_of(std::string_view text, std::string_view helper,
                      std::set<std::string, std::less<>>& out) {
  for (std::size_t at = text.find(helper); at != std::string_view::npos;
       at = text.find(helper, at + 1)) {
    auto rest = text.substr(at + helper.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const auto name = leading_word(rest);
    if (!name.empty()) out.emplace(name);
  }
}

// The string literals at the start of a print format, joined; text is left
// behind them.
std::string take_literals(std::string_view& text) {
  std::string joined;
  while (true) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
      text.remove_prefix(1);
    }
    if (!text.starts_with('"')) return joined;
    std::size_t at = 1;
    while (at < text.size() && text[at] != '"') {
      if (text[at] == '\\' && at + 1 < text.size()) joined += text[at++];
      joined += text[at++];
    }
    text.remove_prefix(std::min(at + 1, text.size()));
  }
}

// The arguments behind the literals, divided at commas outside of parentheses
// and strings.
std::vector<std::string_view> divide_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  if (!text.starts_with(',')) return out;
  text.remove_prefix(1);
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t at = 0; at < text.size() && out.size() < kMaxArguments; ++at) {
    const char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\') ++at;
      }
    } else if (c == '(' || c == '{' || c == '[') {
      ++depth;
    } else if (c == ')' || c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      out.push_back(text.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  out.push_back(text.substr(begin));
  return out;
}

// For each argument that the conversions take: is it printed as a symbol?
std::vector<bool> conversions_of(std::string_view text) {
  std::vector<bool> out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') continue;
    if (++at < text.size() && text[at] == '%') continue;
    for (; at < text.size() && std::string_view("-+ #0123456789.*hlLqjzt").find(text[at]) !=
                                   std::string_view::npos;
         ++at) {
      if (text[at] == '*') out.push_back(false);
    }
    const auto extension = text.substr(std::min(at + 1, text.size())).substr(0, 2);
    const bool pointer = at < text.size() && text[at] == 'p';
    // %pfw is a firmware node, %pBb a stack entry of a module with its build id.
    out.push_back(pointer && !extension.empty() && extension != "fw" &&
                  std::string_view("sSfFB").find(extension.front()) != std::string_view::npos);
  }
  return out;
}

}  // namespace

PrintUses scan_print(std::string_view format) {
  constexpr std::string_view kKey = "\nprint fmt:";
  constexpr std::string_view kRecord = "REC->";
  PrintUses uses;
  const auto start = format.find(kKey);
  if (start == std::string_view::npos) return uses;
  std::string_view text = format.substr(start + kKey.size());
  for (const auto helper : {"__get_bitmask(", "__get_rel_bitmask("}) {
    add_arguments_of(text, helper, uses.bitmasks);
  }
  for (const auto helper : {"__get_cpumask(", "__get_rel_cpumask("}) {
    add_arguments_of(text, helper, uses.cpumasks);
  }
  for (const auto helper : {"__get_sockaddr(", "__get_rel_sockaddr(", "__get_sockaddr_rel("}) {
    add_arguments_of(text, helper, uses.sockaddrs);
  }
  const auto conversions = conversions_of(take_literals(text));
  const auto arguments = divide_arguments(text);
  for (std::size_t i = 0; i < std::min(conversions.size(), arguments.size()); ++i) {
    const auto at = arguments[i].find(kRecord);
    if (!conversions[i] || at == std::string_view::npos) continue;
    const auto name = leading_word(arguments[i].substr(at + kRecord.size()));
    if (!name.empty()) uses.symbols.emplace(name);
  }
  return uses;
}

}  // namespace wbscope
