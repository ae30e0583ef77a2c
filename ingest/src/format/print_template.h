// SPDX-License-Identifier: Apache-2.0
// The print format of an event, turned round: which text stands where in a
// printed record, and what it says of the record's fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/event_catalog.h"

namespace wbscope {

struct PrintLabel {
  std::string text;
  std::optional<std::uint64_t> value;  // none: an enum that the format does not resolve
};

// One argument of the print format.
struct PrintArg {
  enum class Kind : std::uint8_t {
    kNumber,    // the printed number << shift is the field, or a part of it
    kText,      // a string, up to the text that follows
    kFlags,     // labels with `text` between two of them, the rest in hex
    kSymbol,    // one label, or a number in hex
    kConstant,  // `text`, which says that the field is `value`
    kChoice,    // one of `choices`
  };
  Kind kind = Kind::kText;
  std::int32_t field = -1;  // in PrintTemplate::fields; -1: matched, then left out
  std::uint32_t shift = 0;
  std::uint32_t base = 10;
  bool whole = true;  // kConstant: value is all of the field, not one bit of it
  std::string text;
  std::optional<std::uint64_t> value;
  std::vector<PrintLabel> labels;  // longest first
  std::vector<PrintArg> choices;
};

// Fixed text, or an argument.
struct PrintPiece {
  std::optional<PrintArg> arg;
  std::string literal;  // runs of white space as one blank
};

struct PrintTemplate {
  std::vector<FieldPlan> fields;  // all that the record has, in its order
  std::vector<EnumLabel> labels;
  std::vector<PrintPiece> pieces;  // empty: the print format could not be read
  std::size_t invertible = 0;      // fields that a printed record tells
};

// text is an event's whole `format` file. Nothing when it is none.
[[nodiscard]] std::optional<PrintTemplate> compile_print_template(std::string_view system,
                                                                  std::string_view text);

}  // namespace wbscope
