// SPDX-License-Identifier: Apache-2.0
// CellsBatch: rows of a query result as Perfetto's trace processor sends them
// (QueryResult.CellsBatch, protos/perfetto/trace_processor/trace_processor.proto).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace wbscope {

// NULL, integer, real, text, blob; the same as ValueWriter's.
using CellValue = std::variant<std::monostate, std::int64_t, double, std::string_view,
                               std::span<const std::byte>>;

// The cells of one batch, one after the other. It copies nothing: texts and
// blobs are views of the message, which must live as long.
class CellsBatch {
 public:
  // Nothing when the message is not one of whole fields.
  [[nodiscard]] static std::optional<CellsBatch> parse(std::span<const std::byte> message);

  [[nodiscard]] std::size_t size() const noexcept { return types_.size(); }

  // Puts the next cell into value. False when there is none, or when the
  // message has no value for it.
  [[nodiscard]] bool next(CellValue& value);

 private:
  std::span<const std::byte> types_;    // packed CellType, one byte each
  std::span<const std::byte> varints_;  // packed int64
  std::span<const std::byte> reals_;    // packed double
  std::span<const std::byte> texts_;    // each with a NUL behind it
  std::span<const std::byte> rest_;     // the message behind the last blob taken
};

}  // namespace wbscope
