// SPDX-License-Identifier: Apache-2.0
// Protobuf wire format, as far as a CellsBatch needs it.
#include "records/cells_batch.h"

#include <algorithm>
#include <bit>

#include "base/byte_reader.h"

namespace wbscope {
namespace {

// Field numbers and cell types of QueryResult.CellsBatch.
enum Field : std::uint32_t { kCells = 1, kVarints = 2, kReals = 3, kBlobs = 4, kTexts = 5 };
enum CellType : std::uint8_t { kNull = 1, kVarint = 2, kReal = 3, kText = 4, kBlob = 5 };

enum WireType : std::uint32_t { kWireVarint = 0, kWireFixed64 = 1, kWireBytes = 2, kWireFixed32 = 5 };
constexpr std::uint32_t kWireBits = 3;
constexpr unsigned kMaxVarintBytes = 10;

// Takes a varint off the front.
std::optional<std::uint64_t> take_varint(std::span<const std::byte>& data) noexcept {
  std::uint64_t value = 0;
  const std::size_t most = std::min<std::size_t>(data.size(), kMaxVarintBytes);
  for (std::size_t i = 0; i < most; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(data[i]);
    value |= (byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    data = data.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

struct WireField {
  std::uint64_t number = 0;
  std::span<const std::byte> bytes;  // empty unless its wire type is bytes
};

// Takes a whole field off the front.
std::optional<WireField> take_field(std::span<const std::byte>& data) noexcept {
  const auto tag = take_varint(data);
  if (!tag) return std::nullopt;
  WireField field{.number = *tag >> kWireBits, .bytes = {}};
  std::size_t length = 0;
  switch (*tag & ((1u << kWireBits) - 1)) {
    case kWireVarint:
      return take_varint(data) ? std::optional(field) : std::nullopt;
    case kWireFixed64:
      length = 8;
      break;
    case kWireFixed32:
      length = 4;
      break;
    case kWireBytes: {
      const auto told = take_varint(data);
      if (!told || *told > data.size()) return std::nullopt;
      length = static_cast<std::size_t>(*told);
      field.bytes = data.first(length);
      break;
    }
    default:
      return std::nullopt;
  }
  if (length > data.size()) return std::nullopt;
  data = data.subspan(length);
  return field;
}

}  // namespace

std::optional<CellsBatch> CellsBatch::parse(std::span<const std::byte> message) {
  CellsBatch batch;
  batch.rest_ = message;
  for (auto left = message; !left.empty();) {
    const auto field = take_field(left);
    if (!field) return std::nullopt;
    // A packed field may come in parts; trace processor writes each in one.
    const auto once = [&](std::span<const std::byte>& part) {
      if (!part.empty()) return false;
      part = field->bytes;
      return true;
    };
    bool good = true;
    if (field->number == kCells) good = once(batch.types_);
    if (field->number == kVarints) good = once(batch.varints_);
    if (field->number == kReals) good = once(batch.reals_);
    if (field->number == kTexts) good = once(batch.texts_);
    if (!good) return std::nullopt;
  }
  return batch;
}

bool CellsBatch::next(CellValue& value) {
  if (types_.empty()) return false;
  const auto type = std::to_integer<std::uint8_t>(types_.front());
  types_ = types_.subspan(1);
  switch (type) {
    case kNull:
      value = std::monostate{};
      return true;
    case kVarint: {
      const auto number = take_varint(varints_);
      if (!number) return false;
      value = static_cast<std::int64_t>(*number);
      return true;
    }
    case kReal: {
      if (reals_.size() < sizeof(double)) return false;
      value = std::bit_cast<double>(load<std::uint64_t>(reals_.data(), ByteOrder::kLittle));
      reals_ = reals_.subspan(sizeof(double));
      return true;
    }
    case kText: {
      const auto end = std::find(texts_.begin(), texts_.end(), std::byte{0});
      if (end == texts_.end()) return false;
      const auto length = static_cast<std::size_t>(end - texts_.begin());
      value = as_text(texts_.first(length));
      texts_ = texts_.subspan(length + 1);
      return true;
    }
    case kBlob:
      while (!rest_.empty()) {
        const auto field = take_field(rest_);
        if (!field) return false;
        if (field->number != kBlobs) continue;
        value = field->bytes;
        return true;
      }
      return false;
    default:
      return false;
  }
}

}  // namespace wbscope
