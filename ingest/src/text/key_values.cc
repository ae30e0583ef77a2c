// SPDX-License-Identifier: Apache-2.0
// key=value payloads.
#include "text/key_values.h"

#include <cctype>

#include "text/characters.h"
#include "text/line_head.h"
#include "text/payload_match.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxPairs = 256;  // of one line
constexpr auto kNpos = std::string_view::npos;

bool is_key_start(char c) noexcept { return is_letter(c) || c == '_'; }
bool is_key_char(char c) noexcept { return is_name(c) || c == '.'; }

std::string_view trimmed(std::string_view text) noexcept {
  text = without_lead(text);
  while (!text.empty() && (is_blank(text.back()) || text.back() == ',')) text.remove_suffix(1);
  return text;
}

struct KeyAt {
  std::size_t begin;
  std::size_t end;    // behind the key
  std::size_t value;  // behind "=" or ": "
};

// The next key at or after `at`: at the start of a word, "key=" or "key: ".
bool next_key(std::string_view text, std::size_t at, KeyAt& out) {
  for (; at < text.size(); ++at) {
    const bool word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\t' || text[at - 1] == ',' ||
                      text[at - 1] == '(' || text[at - 1] == '{';
    if (!word || !is_key_start(text[at])) continue;
    std::size_t end = at;
    while (end < text.size() && is_key_char(text[end])) ++end;
    const bool equals = end < text.size() && text[end] == '=' &&
                        (end + 1 == text.size() || text[end + 1] != '=');
    const bool colon = end + 1 < text.size() && text[end] == ':' && text[end + 1] == ' ';
    if ((equals || colon) && end - at <= kMaxTextName) {
      out = {.begin = at, .end = end, .value = end + 1};
      return true;
    }
    at = end;
    if (at >= text.size()) break;
  }
  return false;
}

KeyValue pair_of(std::string_view key, std::string_view value) {
  KeyValue out{.key = key, .value = trimmed(value), .second = {}};
  // a=1(2): the same quantity of a part and of the whole
  const auto open = out.value.find('(');
  if (open != kNpos && open > 0 && out.value.ends_with(')') &&
      is_digit(out.value[0])) {
    out.second = out.value.substr(open + 1, out.value.size() - open - 2);
    out.value = out.value.substr(0, open);
  }
  return out;
}

}  // namespace

std::vector<KeyValue> split_key_values(std::string_view payload) {
  std::vector<KeyValue> out;
  KeyAt key{};
  bool more = next_key(payload, 0, key);
  std::string_view lead = trimmed(payload.substr(0, more ? key.begin : payload.size()));
  // "bdi 8:0: ..." names its first value without "=".
  if (lead.ends_with(':')) {
    const auto blank = lead.find(' ');
    const auto word = lead.substr(0, blank);
    if (blank != kNpos && !word.empty() && is_key_start(word.front()) &&
        lead.find(' ', blank + 1) == kNpos) {
      out.push_back({.key = word,
                     .value = lead.substr(blank + 1, lead.size() - blank - 2),
                     .second = {}});
      lead = {};
    }
  }
  if (!lead.empty()) out.push_back({.key = {}, .value = lead, .second = {}});
  while (more && out.size() < kMaxPairs) {
    const KeyAt here = key;
    more = next_key(payload, here.value, key);
    const std::size_t end = more ? key.begin : payload.size();
    out.push_back(pair_of(payload.substr(here.begin, here.end - here.begin),
                          payload.substr(here.value, end - here.value)));
  }
  return out;
}

Value typed_value(std::string_view text, std::uint32_t base) {
  if (text.empty()) return text;
  const std::string_view digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  const char first = digits.empty() ? ' ' : digits.front();
  if (first != '-' && std::isxdigit(static_cast<unsigned char>(first)) == 0) return text;
  std::uint64_t number = 0;
  if (parse_number(digits, 0, base, number) != digits.size()) return text;
  return static_cast<std::int64_t>(number);
}

}  // namespace wbscope
