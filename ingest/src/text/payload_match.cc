// SPDX-License-Identifier: Apache-2.0
// Printed records back into fields.
#include "text/payload_match.h"

#include <algorithm>
#include <charconv>

#include "text/characters.h"

namespace wbscope {
namespace {

constexpr auto kNpos = std::string_view::npos;
constexpr std::uint32_t kMaxSteps = 2000;  // tries on one line; bounds backtracking

}  // namespace

std::size_t parse_number(std::string_view text, std::size_t at, std::uint32_t base,
                         std::uint64_t& out) noexcept {
  at = skip_blanks(text, at);
  const bool minus = at < text.size() && text[at] == '-';
  if (minus) ++at;
  const bool prefixed = at + 1 < text.size() && text[at] == '0' && (text[at + 1] | 0x20) == 'x';
  if (prefixed) {
    base = 16;
    at += 2;
  }
  std::uint64_t value = 0;
  const auto [end, problem] =
      std::from_chars(text.data() + at, text.data() + text.size(), value, static_cast<int>(base));
  if (problem != std::errc()) return kNpos;
  out = minus ? 0 - value : value;
  return static_cast<std::size_t>(end - text.data());
}

std::int64_t as_field(std::uint64_t number, const FieldPlan& field) noexcept {
  if (field.bytes == 0 || field.bytes >= 8) return static_cast<std::int64_t>(number);
  const unsigned bits = field.bytes * 8;
  const auto value = static_cast<std::int64_t>(number);
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  // Printed with the other signedness. A number that does not fit at all is
  // from a kernel with a wider field: it stays.
  if (field.is_signed && value >= half && value < 2 * half) return value - 2 * half;
  if (!field.is_signed && value < 0 && value >= -half) return value + 2 * half;
  return value;
}

// A blank stands for any run of blanks. It may be none at the end of the line
// and behind a blank, where the printed text was empty.
std::size_t PayloadMatcher::after_literal(std::string_view literal, std::size_t at) const {
  for (const char c : literal) {
    if (c == ' ') {
      const bool free = at >= payload_.size() || (at > 0 && is_blank(payload_[at - 1]));
      if (!free && !is_blank(payload_[at])) return kNpos;
      at = skip_blanks(payload_, at);
    } else {
      if (at >= payload_.size() || payload_[at] != c) return kNpos;
      ++at;
    }
  }
  return at;
}

bool PayloadMatcher::step(std::size_t piece, std::size_t at) {
  if (++steps_ > kMaxSteps) return false;
  if (piece == print_->pieces.size()) {
    return skip_blanks(payload_, at) == payload_.size();
  }
  const PrintPiece& here = print_->pieces[piece];
  if (here.arg) return step_arg(*here.arg, piece, at);
  const std::size_t end = after_literal(here.literal, at);
  return end != kNpos && step(piece + 1, end);
}

bool PayloadMatcher::go_on(const PrintArg& arg, std::uint64_t number, bool is_known,
                           std::size_t piece, std::size_t at) {
  const std::size_t mark = told_.size();
  if (arg.field >= 0) {
    told_.push_back({.field = arg.field,
                     .is_text = false,
                     .is_known = is_known,
                     .number = number << arg.shift,
                     .text = {}});
  }
  if (step(piece + 1, at)) return true;
  told_.resize(mark);
  return false;
}

bool PayloadMatcher::step_text(const PrintArg& arg, std::size_t piece, std::size_t at) {
  const auto take = [&](std::size_t end) {
    const std::size_t mark = told_.size();
    if (arg.field >= 0) {
      told_.push_back({.field = arg.field,
                       .is_text = true,
                       .is_known = true,
                       .number = 0,
                       .text = payload_.substr(at, end - at)});
    }
    if (step(piece + 1, end)) return true;
    told_.resize(mark);
    return false;
  };
  if (piece + 1 == print_->pieces.size()) return take(payload_.size());
  const PrintPiece& next = print_->pieces[piece + 1];
  if (next.arg) return take(find_blank(payload_, at));
  for (std::size_t end = at; end <= payload_.size(); ++end) {
    if (end < payload_.size() && !next.literal.empty()) {
      // Where the text that follows can begin.
      const char first = next.literal.front();
      end = first == ' ' ? find_blank(payload_, end)
                         : std::min(payload_.find(first, end), payload_.size());
    }
    // "bdi=8:0, pages=1" is not "bdi=%s pages=%lu" with the name "8:0,".
    const bool has_comma = end > at && payload_[std::min(end, payload_.size()) - 1] == ',';
    if (++steps_ > kMaxSteps) return false;
    if (has_comma && next.literal.starts_with(' ')) continue;
    if (after_literal(next.literal, end) != kNpos && take(end)) return true;
  }
  return false;
}

bool PayloadMatcher::step_arg(const PrintArg& arg, std::size_t piece, std::size_t at) {
  switch (arg.kind) {
    case PrintArg::Kind::kText:
      return step_text(arg, piece, at);
    case PrintArg::Kind::kNumber: {
      std::uint64_t number = 0;
      const std::size_t end = parse_number(payload_, at, arg.base, number);
      return end != kNpos && go_on(arg, number, true, piece, end);
    }
    case PrintArg::Kind::kConstant: {
      if (!payload_.substr(std::min(at, payload_.size())).starts_with(arg.text)) return false;
      return go_on(arg, arg.value.value_or(0), arg.value.has_value(), piece,
                   at + arg.text.size());
    }
    case PrintArg::Kind::kChoice:
      return std::any_of(arg.choices.begin(), arg.choices.end(), [&](const PrintArg& choice) {
        return step_arg(choice, piece, at);
      });
    case PrintArg::Kind::kSymbol:
    case PrintArg::Kind::kFlags:
      break;
  }
  const bool flags = arg.kind == PrintArg::Kind::kFlags;
  std::uint64_t number = 0;
  bool is_known = true;
  for (bool first = true;; first = false) {
    const std::string_view rest = payload_.substr(std::min(at, payload_.size()));
    const auto label =
        std::find_if(arg.labels.begin(), arg.labels.end(),
                     [rest](const PrintLabel& l) { return rest.starts_with(l.text); });
    std::uint64_t bits = 0;
    if (label != arg.labels.end()) {
      at += label->text.size();
      is_known = is_known && label->value.has_value();
      bits = label->value.value_or(0);
    } else if (rest.starts_with("0x")) {
      at = parse_number(payload_, at, 16, bits);
      if (at == kNpos) return false;
    } else {
      if (!flags || !first) return flags && arg.text.empty() && go_on(arg, number, is_known, piece, at);
      break;  // no flag at all
    }
    number |= bits;
    if (!flags) break;
    if (!payload_.substr(std::min(at, payload_.size())).starts_with(arg.text)) break;
    at += arg.text.size();
  }
  return go_on(arg, number, is_known, piece, at);
}

bool PayloadMatcher::fill_values() {
  values_.assign(print_->fields.size(), Value{});
  unknown_.assign(print_->fields.size(), 0);
  for (const Told& told : told_) {
    const auto field = static_cast<std::size_t>(told.field);
    if (!told.is_known) {
      unknown_[field] = 1;
    } else if (told.is_text) {
      values_[field] = told.text;
    } else {
      auto* number = std::get_if<std::int64_t>(&values_[field]);
      const auto before = number == nullptr ? 0 : static_cast<std::uint64_t>(*number);
      values_[field] = static_cast<std::int64_t>(before | told.number);
    }
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (unknown_[i] != 0) values_[i] = Value{};
    if (auto* number = std::get_if<std::int64_t>(&values_[i])) {
      *number = as_field(static_cast<std::uint64_t>(*number), print_->fields[i]);
    }
  }
  return true;
}

bool PayloadMatcher::match(const PrintTemplate& print, std::string_view payload) {
  if (print.pieces.empty()) return false;
  print_ = &print;
  payload_ = payload;
  told_.clear();
  steps_ = 0;
  return step(0, 0) && fill_values();
}

}  // namespace wbscope
