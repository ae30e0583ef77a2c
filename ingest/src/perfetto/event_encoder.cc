// SPDX-License-Identifier: Apache-2.0
// One record as the message that an FtraceEvent holds.
#include "perfetto/event_encoder.h"

#include <algorithm>

#include "base/utf8.h"
#include "perfetto/protos.h"

namespace wbscope {
namespace {

using How = FieldShape::How;

// makedev() of the numbers in the kernel's dev_t, as Perfetto's recorder does:
// its readers take devices for what stat() says.
std::uint64_t user_device(std::int64_t kernel_device) noexcept {
  const auto device = static_cast<std::uint64_t>(kernel_device);
  const std::uint64_t major = device >> 20;
  const std::uint64_t minor = device & 0xfffff;
  return (major & 0xfff) << 8 | (minor & 0xff) | (minor >> 8) << 20 | (major >> 12) << 44;
}

// The next part of a mark, up to a '|' or the end.
std::string_view take_part(std::string_view& rest) noexcept {
  const auto end = rest.find('|');
  const auto part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return part;
}

bool is_digits(std::string_view text, std::size_t most) noexcept {
  return !text.empty() && text.size() <= most &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_integer(std::string_view text) noexcept {
  constexpr std::size_t kMostDigits = 18;
  if (text.starts_with('-')) text.remove_prefix(1);
  return is_digits(text, kMostDigits);
}

}  // namespace

bool is_atrace_mark(std::string_view text) noexcept {
  constexpr std::size_t kMostPidDigits = 9;
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string_view rest = text;
  const auto phase = take_part(rest);
  if (phase.size() != 1) return false;
  if (text == "E") return true;
  if (!is_digits(take_part(rest), kMostPidDigits)) return false;
  const auto name = take_part(rest);
  switch (phase[0]) {
    case 'B':
    case 'E':
      return true;
    case 'I':
      return !name.empty();
    case 'N':
      return !name.empty() && !take_part(rest).empty();
    case 'S':
    case 'F':
    case 'C':
    case 'H':
      return !name.empty() && is_integer(take_part(rest));
    case 'G':
      return !name.empty() && !take_part(rest).empty() && is_integer(take_part(rest));
    default:
      return false;
  }
}

void EventEncoder::Out::text(std::string_view text) {
  kind = Kind::kText;
  chars = text;
  if (is_utf8(text)) return;
  counters->add(Counter::kReplacedText);
  kept = replace_invalid_utf8(text);
  chars = kept;
}

// Readers have no type for bytes.
void EventEncoder::Out::blob(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  kept.clear();
  for (const std::byte byte : bytes) {
    kept += kDigits[std::to_integer<unsigned>(byte) >> 4];
    kept += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  kind = Kind::kText;
  chars = kept;
}

EventEncoder::EventEncoder(const EventCatalog& catalog, ByteOrder order,
                           const PrintkFormats& printk, NameOf name_of)
    : order_(order),
      reader_({.order = order,
               .long_bytes = catalog.page.commit_bytes,
               .printk = printk,
               .counters = counters_}),
      name_of_(std::move(name_of)) {
  out_.counters = &counters_;
}

void EventEncoder::read(const EventPlan& plan, const FieldPlan& field,
                        std::span<const std::byte> record) {
  out_.addresses.clear();
  if (field.kind == FieldKind::kPrintk) {
    reader_.read_printk(plan, record, out_);
  } else {
    reader_.read_part(field, record, out_);
  }
}

std::string_view EventEncoder::encode(const EventPlan& plan, const EventShape& shape,
                                      std::span<const std::byte> record,
                                      const OnSymbol& on_symbol) {
  body_.clear();
  const bool whole = record.size() >= plan.min_bytes;
  if (shape.is_simple && whole) [[likely]] {
    for (const auto& field : shape.fields) {
      const FieldPlan& from = plan.fields[field.field];
      body_.number(field.number,
                   static_cast<std::uint64_t>(read_integer(record.data() + from.offset, from.bytes,
                                                           from.is_signed, order_)));
    }
    return body_.view();
  }
  if (!whole) counters_.add(Counter::kShortRecords);
  if (shape.form == EventShape::Form::kNamed) body_.bytes(protos::generic::kEventName, shape.name);
  for (const auto& field : shape.fields) {
    const FieldPlan& from = plan.fields[field.field];
    if (field.how == How::kNumbers) {
      put_numbers(from, field, record);
      continue;
    }
    read(plan, from, record);
    if (field.how == How::kSymbols) name_addresses();
    if (out_.kind == Out::Kind::kNull) continue;
    if (shape.form == EventShape::Form::kNamed) {
      put_named(from, field);
    } else {
      put(field, on_symbol);
    }
  }
  return body_.view();
}

void EventEncoder::put(const FieldShape& shape, const OnSymbol& on_symbol) {
  if (out_.kind == Out::Kind::kText) {
    body_.bytes(shape.number, out_.chars);
    return;
  }
  const auto number = static_cast<std::uint64_t>(out_.value);
  if (shape.is_symbol) on_symbol(number);
  body_.number(shape.number, shape.how == How::kDevice ? user_device(out_.value) : number);
}

void EventEncoder::put_numbers(const FieldPlan& field, const FieldShape& shape,
                               std::span<const std::byte> record) {
  const auto data = reader_.elements(field, record);
  if (!data) return;
  for (std::size_t at = 0; at + field.element_bytes <= data->size(); at += field.element_bytes) {
    body_.number(shape.number, static_cast<std::uint64_t>(read_integer(
                                   data->data() + at, field.element_bytes, field.is_signed, order_)));
  }
}

void EventEncoder::put_named(const FieldPlan& field, const FieldShape& shape) {
  using namespace protos::generic;
  nested_.clear();
  nested_.bytes(kName, shape.name);
  if (out_.kind == Out::Kind::kText) {
    nested_.bytes(kText, out_.chars);
  } else {
    nested_.number(field.is_signed ? kInt : kUint,
                   shape.how == How::kDevice ? user_device(out_.value)
                                             : static_cast<std::uint64_t>(out_.value));
  }
  body_.bytes(kField, nested_.view());
}

// The names of the addresses that the value holds, in place of the value.
void EventEncoder::name_addresses() {
  names_.clear();
  bool any = false;
  for (const std::uint64_t address : out_.addresses) {
    const std::string name = name_of_(address);
    any |= !name.empty();
    names_.append(names_.empty() ? "" : ", ").append(name.empty() ? "?" : name);
  }
  if (!any) return out_.null();
  out_.made(names_);
}

std::string_view EventEncoder::text_of(const EventPlan& plan, std::string_view name,
                                       std::span<const std::byte> record) {
  for (const auto& field : plan.fields) {
    if (field.name != name) continue;
    read(plan, field, record);
    return out_.kind == Out::Kind::kText ? out_.chars : std::string_view{};
  }
  return {};
}

}  // namespace wbscope
