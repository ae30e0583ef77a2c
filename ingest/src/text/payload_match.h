// SPDX-License-Identifier: Apache-2.0
// PayloadMatcher: the fields of a record, read back from its printed text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "format/print_template.h"
#include "sink/value_writer.h"

namespace wbscope {

class PayloadMatcher {
 public:
  // Matches all of payload. On success values() has one value for each of the
  // template's fields, NULL where the text does not tell; texts point into
  // payload or into the template.
  [[nodiscard]] bool match(const PrintTemplate& print, std::string_view payload);

  [[nodiscard]] const std::vector<Value>& values() const noexcept { return values_; }

 private:
  // What one piece of text says of a field.
  struct Told {
    std::int32_t field;
    bool is_text;
    bool is_known;  // false: something that has no number here
    std::uint64_t number;
    std::string_view text;
  };

  bool step(std::size_t piece, std::size_t at);
  bool step_arg(const PrintArg& arg, std::size_t piece, std::size_t at);
  bool step_text(const PrintArg& arg, std::size_t piece, std::size_t at);
  bool go_on(const PrintArg& arg, std::uint64_t number, bool is_known, std::size_t piece,
             std::size_t at);
  [[nodiscard]] std::size_t after_literal(std::string_view literal, std::size_t at) const;
  bool fill_values();

  const PrintTemplate* print_ = nullptr;
  std::string_view payload_;
  std::vector<Told> told_;
  std::vector<Value> values_;
  std::vector<std::uint8_t> unknown_;
  std::uint32_t steps_ = 0;
};

// A number as kernels print it: blanks, sign, 0x. Returns where it ends, or
// npos when text has none at `at`.
[[nodiscard]] std::size_t parse_number(std::string_view text, std::size_t at, std::uint32_t base,
                                       std::uint64_t& out) noexcept;

// The number as the field holds it: the width and sign of its C type.
[[nodiscard]] std::int64_t as_field(std::uint64_t number, const FieldPlan& field) noexcept;

}  // namespace wbscope
