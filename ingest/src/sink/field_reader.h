// SPDX-License-Identifier: Apache-2.0
// Values of a record's fields, as every output of this program has them:
// numbers, text, arrays as "[1,2,3]", masks and addresses as the kernel prints
// them, bytes.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_reader.h"
#include "base/counters.h"
#include "format/event_catalog.h"
#include "format/printk_text.h"
#include "sink/field_text.h"

namespace wbscope {

// What reading a field needs beside the record. The references outlive it.
struct FieldContext {
  ByteOrder order;
  std::uint32_t long_bytes;
  const PrintkFormats& printk;
  Counters& counters;
};

[[nodiscard]] inline std::int64_t read_integer(const std::byte* data, std::uint32_t bytes,
                                               bool is_signed, ByteOrder order) noexcept {
  switch (bytes) {
    case 1: {
      const auto v = load<std::uint8_t>(data, order);
      return is_signed ? static_cast<std::int8_t>(v) : std::int64_t{v};
    }
    case 2: {
      const auto v = load<std::uint16_t>(data, order);
      return is_signed ? static_cast<std::int16_t>(v) : std::int64_t{v};
    }
    case 4: {
      const auto v = load<std::uint32_t>(data, order);
      return is_signed ? static_cast<std::int32_t>(v) : std::int64_t{v};
    }
    default:
      // Unsigned values of 2^63 and more come out negative: SQLite has no
      // unsigned integers, and the 64 bits are kept.
      return load<std::int64_t>(data, order);
  }
}

[[nodiscard]] inline std::string_view until_nul(std::span<const std::byte> bytes) noexcept {
  const auto text = as_text(bytes);
  return text.substr(0, text.find('\0'));
}

// Reads fields into an Out, which has
//   integer(int64), text(string_view), blob(span), null(): the value;
//   scratch(): an empty string, and made(string&): that string as the value;
//   symbol(uint64): an address of kernel code that a value holds.
// text() may not be UTF-8; what scratch() became is ASCII.
template <typename Out>
class FieldReader {
 public:
  explicit FieldReader(const FieldContext& context) : context_(context) {}

  // Pre: the record has the field: record.size() >= field.end().
  void read(const FieldPlan& field, std::span<const std::byte> record, Out& out) const {
    switch (field.kind) {
      case FieldKind::kInteger:
        return read_number(field, record, out);
      case FieldKind::kText:
        return out.text(until_nul(record.subspan(field.offset, field.bytes)));
      case FieldKind::kRestText:
        return out.text(until_nul(record.subspan(field.offset)));
      case FieldKind::kArray:
        return array(field, record.subspan(field.offset, field.bytes), out);
      case FieldKind::kRestArray:
        return array(field, record.subspan(field.offset), out);
      case FieldKind::kBytes:
        return bytes(field,
                     field.bytes == 0 ? record.subspan(field.offset)
                                      : record.subspan(field.offset, field.bytes),
                     out);
      case FieldKind::kPrintk:
        return;  // made of other fields, by read_printk()
      default:
        dynamic(field, record, out);
    }
  }

  // A field of a record that ends before the format does: what there is of it.
  void read_part(const FieldPlan& field, std::span<const std::byte> record, Out& out) const {
    if (field.end() <= record.size()) return read(field, record, out);
    FieldPlan part = field;
    const std::size_t left = field.offset < record.size() ? record.size() - field.offset : 0;
    part.bytes = static_cast<std::uint32_t>(left);
    if (field.kind == FieldKind::kArray) part.bytes -= part.bytes % field.element_bytes;
    const bool divisible =
        field.kind == FieldKind::kText || field.kind == FieldKind::kArray ||
        (field.kind == FieldKind::kBytes && part.rendering == Rendering::kPlain);
    if (!divisible || part.bytes == 0) return out.null();
    read(part, record, out);
  }

  // The bytes of an array, as far as the record has it; nothing when they lie
  // outside the record.
  [[nodiscard]] std::optional<std::span<const std::byte>> elements(
      const FieldPlan& field, std::span<const std::byte> record) const {
    const std::size_t begin = std::min<std::size_t>(field.offset, record.size());
    if (field.kind == FieldKind::kRestArray) return record.subspan(begin);
    if (field.kind == FieldKind::kArray) {
      return record.subspan(begin, std::min<std::size_t>(field.bytes, record.size() - begin));
    }
    return field.end() <= record.size() ? dynamic_data(field, record) : std::nullopt;
  }

  // trace_bputs() stores the address of its text, trace_bprintk() that of a
  // format and the arguments.
  void read_printk(const EventPlan& plan, std::span<const std::byte> record, Out& out) const {
    std::optional<std::string> text;
    const FieldPlan* arguments = whole_field(plan, "buf", record);
    const FieldPlan* address = whole_field(plan, arguments == nullptr ? "str" : "fmt", record);
    if (address != nullptr && address->kind == FieldKind::kInteger) {
      const auto found = context_.printk.find(static_cast<std::uint64_t>(
          read_integer(record.data() + address->offset, address->bytes, false, context_.order)));
      if (found != context_.printk.end() && arguments == nullptr) {
        text = found->second;
      } else if (found != context_.printk.end()) {
        text = printk_text(found->second, record.subspan(arguments->offset), context_.long_bytes,
                           context_.order);
        if (!text) context_.counters.add(Counter::kBadDynamicFields);
      }
    }
    if (!text) return out.null();
    std::string& kept = out.scratch();
    kept = std::move(*text);
    out.text(kept);
  }

 private:
  static const FieldPlan* whole_field(const EventPlan& plan, std::string_view name,
                                      std::span<const std::byte> record) {
    const auto found = std::find_if(plan.fields.begin(), plan.fields.end(),
                                    [&](const auto& each) { return each.name == name; });
    const bool whole = found != plan.fields.end() && found->end() <= record.size();
    return whole ? &*found : nullptr;
  }

  void read_number(const FieldPlan& field, std::span<const std::byte> record, Out& out) const {
    const std::int64_t value =
        read_integer(record.data() + field.offset, field.bytes, field.is_signed, context_.order);
    if (field.is_symbol) out.symbol(static_cast<std::uint64_t>(value));
    out.integer(value);
  }

  // Integers as "[1,2,3]", which json_each() of SQLite can take apart.
  void array(const FieldPlan& field, std::span<const std::byte> data, Out& out) const {
    if (field.rendering != Rendering::kPlain) return bytes(field, data, out);
    if (field.element_bytes != 2 && field.element_bytes != 4 && field.element_bytes != 8) {
      return out.blob(data);
    }
    std::string& made = out.scratch();
    made += '[';
    for (std::size_t at = 0; at + field.element_bytes <= data.size(); at += field.element_bytes) {
      if (at > 0) made += ',';
      const std::int64_t value =
          read_integer(data.data() + at, field.element_bytes, field.is_signed, context_.order);
      if (field.is_symbol) out.symbol(static_cast<std::uint64_t>(value));
      char digits[24];
      const auto end = field.is_signed || field.element_bytes < 8
                           ? std::to_chars(digits, digits + sizeof(digits), value)
                           : std::to_chars(digits, digits + sizeof(digits),
                                           static_cast<std::uint64_t>(value));
      made.append(digits, end.ptr);
    }
    made += ']';
    out.made(made);
  }

  void bytes(const FieldPlan& field, std::span<const std::byte> data, Out& out) const {
    const MaskLayout layout{.order = context_.order, .long_bytes = context_.long_bytes};
    if (field.rendering == Rendering::kPlain) return out.blob(data);
    std::string& made = out.scratch();
    switch (field.rendering) {
      case Rendering::kBitmask:
        append_bitmask(data, layout, made);
        break;
      case Rendering::kCpumask:
        append_cpumask(data, layout, made);
        break;
      default:
        if (append_sockaddr(data, context_.order, made)) break;
        return out.blob(data);
    }
    out.made(made);
  }

  // include/trace/trace_events.h: length in the high half, offset in the low,
  // from the record's start (__data_loc) or the field's end (__rel_loc).
  [[nodiscard]] std::optional<std::span<const std::byte>> dynamic_data(
      const FieldPlan& field, std::span<const std::byte> record) const {
    const auto word = load<std::uint32_t>(record.data() + field.offset, context_.order);
    const bool relative = field.kind == FieldKind::kRelText ||
                          field.kind == FieldKind::kRelArray || field.kind == FieldKind::kRelBytes;
    const std::size_t start = (word & 0xffffu) + (relative ? field.end() : 0);
    const std::size_t length = word >> 16;
    if (start > record.size() || length > record.size() - start) {
      context_.counters.add(Counter::kBadDynamicFields);
      return std::nullopt;
    }
    return record.subspan(start, length);
  }

  void dynamic(const FieldPlan& field, std::span<const std::byte> record, Out& out) const {
    const auto data = dynamic_data(field, record);
    if (!data) return out.null();
    switch (field.kind) {
      case FieldKind::kDynText:
      case FieldKind::kRelText:
        return out.text(until_nul(*data));
      case FieldKind::kDynArray:
      case FieldKind::kRelArray:
        return array(field, *data, out);
      default:
        bytes(field, *data, out);
    }
  }

  FieldContext context_;
};

}  // namespace wbscope
