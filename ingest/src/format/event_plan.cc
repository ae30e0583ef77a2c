// SPDX-License-Identifier: Apache-2.0
// The fields and labels of one event, from a format that libtraceevent read.
#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/names.h"
#include "format/format_share.h"
#include "format/print_uses.h"
#include "format/tep_handle.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxFields = 512;
constexpr int kMaxPrintDepth = 64;
// How often the fields of a format may have each byte of a record, if they all had the
// same. Those of a kernel lie beside each other.
constexpr std::uint64_t kMostOverlap = 2;
constexpr std::ptrdiff_t kMostRests = 4;  // fields that reach to the record's end

bool is_char_type(std::string_view type) {
  return type.find("char") != std::string_view::npos &&
         type.find("unsigned") == std::string_view::npos;
}

// Bytes of one element of a dynamic array, for which libtraceevent has no
// number; 0 for types that are no integers.
std::uint32_t element_bytes(std::string_view type, std::uint32_t long_bytes) {
  for (const std::string_view prefix : {"__data_loc ", "__rel_loc "}) {
    if (type.starts_with(prefix)) type.remove_prefix(prefix.size());
  }
  type = type.substr(0, type.find('['));
  while (type.ends_with(' ')) type.remove_suffix(1);
  if (type.ends_with('*')) return long_bytes;
  for (const std::string_view prefix : {"const ", "unsigned ", "signed "}) {
    if (type.starts_with(prefix)) type.remove_prefix(prefix.size());
  }
  while (type.starts_with('_')) type.remove_prefix(1);
  static constexpr std::pair<std::string_view, std::uint32_t> kSizes[] = {
      {"char", 1},     {"u8", 1},       {"s8", 1},        {"uint8_t", 1},  {"int8_t", 1},
      {"bool", 1},     {"short", 2},    {"u16", 2},       {"s16", 2},      {"uint16_t", 2},
      {"int16_t", 2},  {"be16", 2},     {"le16", 2},      {"int", 4},      {"unsigned", 4},
      {"signed", 4},   {"u32", 4},      {"s32", 4},       {"uint32_t", 4}, {"int32_t", 4},
      {"be32", 4},     {"le32", 4},     {"pid_t", 4},     {"dev_t", 4},    {"gfp_t", 4},
      {"u64", 8},      {"s64", 8},      {"uint64_t", 8},  {"int64_t", 8},  {"be64", 8},
      {"le64", 8},     {"long long", 8}, {"long long int", 8}, {"loff_t", 8}, {"sector_t", 8},
      {"dma_addr_t", 8}, {"long", 0},   {"long int", 0},  {"size_t", 0},   {"ssize_t", 0},
      {"ulong", 0},    {"uintptr_t", 0}, {"ino_t", 0},    {"short int", 2}, {"uint", 4}};
  for (const auto& [name, bytes] : kSizes) {
    if (type == name) return bytes == 0 ? long_bytes : bytes;
  }
  return 0;
}

// Synthetic events give the location of a string 8 bytes, and use the first 4.
FieldKind dynamic_kind(const FieldPlan& field, bool relative) {
  if (field.bytes != 4 && (field.bytes != 8 || relative)) return FieldKind::kBytes;
  if (is_char_type(field.type)) return relative ? FieldKind::kRelText : FieldKind::kDynText;
  // Single bytes are rather an address or a key than a list of numbers.
  if (field.element_bytes < 2) return relative ? FieldKind::kRelBytes : FieldKind::kDynBytes;
  return relative ? FieldKind::kRelArray : FieldKind::kDynArray;
}

FieldKind fixed_kind(const tep_format_field& from, const FieldPlan& field) {
  const std::string_view type = field.type;
  const bool integers = field.element_bytes > 1;
  if ((from.flags & TEP_FIELD_IS_ARRAY) != 0) {
    if (is_char_type(type)) return from.size == 0 ? FieldKind::kRestText : FieldKind::kText;
    if (integers && field.bytes % field.element_bytes == 0) {
      return field.bytes == 0 ? FieldKind::kRestArray : FieldKind::kArray;
    }
    return FieldKind::kBytes;
  }
  const bool composed = type.starts_with("struct ") || type.starts_with("union ");
  if (composed && type.find('*') == std::string_view::npos) return FieldKind::kBytes;
  if (from.size == 1 || from.size == 2 || from.size == 4 || from.size == 8) {
    return FieldKind::kInteger;
  }
  // ftrace:print of old kernels says "char buf; size:0".
  if (from.size == 0 && is_char_type(type)) return FieldKind::kRestText;
  return FieldKind::kBytes;
}

void set_kind(const tep_format_field& from, std::uint32_t long_bytes, FieldPlan& field) {
  if ((from.flags & (TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_RELATIVE)) == 0) {
    // "u32 words[]" of 8 bytes, as kprobe events say it, has none either.
    const auto told = from.arraylen == 0 ? 0 : from.elementsize;
    const bool usable = told == 2 || told == 4 || told == 8;
    field.element_bytes = usable ? told : element_bytes(field.type, long_bytes);
    field.kind = fixed_kind(from, field);
    return;
  }
  field.element_bytes = element_bytes(field.type, long_bytes);
  field.kind = dynamic_kind(field, (from.flags & TEP_FIELD_IS_RELATIVE) != 0);
}

Rendering rendering_of(const FieldPlan& field, const PrintUses& uses) {
  switch (field.kind) {
    case FieldKind::kArray:
    case FieldKind::kDynArray:
    case FieldKind::kRelArray:
    case FieldKind::kBytes:
    case FieldKind::kDynBytes:
    case FieldKind::kRelBytes:
      break;
    default:
      return Rendering::kPlain;
  }
  if (uses.cpumasks.contains(field.name) || field.type.find("cpumask_t") != std::string::npos) {
    return Rendering::kCpumask;
  }
  if (uses.bitmasks.contains(field.name)) return Rendering::kBitmask;
  if (uses.sockaddrs.contains(field.name)) return Rendering::kSockaddr;
  return Rendering::kPlain;
}

// What the formats of the kernel's own entries (kernel/trace/trace_entries.h)
// do not say of themselves.
void adapt_ftrace_entry(EventPlan& plan) {
  FieldPlan& last = plan.fields.back();
  // As many callers as there were, not as many as the format has room for.
  if (last.kind == FieldKind::kArray && last.name == "caller") {
    last.kind = FieldKind::kRestArray;
    last.bytes = 0;
  }
  // Any bytes that user space wrote, which the format calls char[], and
  // arguments of any size, which it calls u32[].
  if ((plan.name == "raw_data" && last.kind == FieldKind::kRestText) ||
      (plan.name == "bprint" && last.kind == FieldKind::kRestArray)) {
    last.kind = FieldKind::kBytes;
  }
  for (auto& field : plan.fields) {
    for (const auto* name : {"ip", "parent_ip", "func", "caller", "retaddr"}) {
      if (field.name == name) field.is_symbol = true;
    }
  }
  if (plan.name != "bprint" && plan.name != "bputs") return;
  plan.fields.push_back({.name = "text", .column = "text", .type = {}, .kind = FieldKind::kPrintk});
}

// Whether a row has about as many bytes as its record.
bool is_beside(const EventPlan& plan) {
  std::uint64_t bytes = 0;
  for (const auto& field : plan.fields) bytes += field.bytes;
  const auto rests = std::count_if(plan.fields.begin(), plan.fields.end(), [](const auto& field) {
    return field.bytes == 0 && field.kind != FieldKind::kPrintk;
  });
  return bytes <= kMostOverlap * plan.min_bytes && rests <= kMostRests;
}

// The field that a number in a print format comes from.
const char* labelled_field(const tep_print_arg* arg, int depth) {
  if (arg == nullptr || depth > kMaxPrintDepth) return nullptr;
  switch (arg->type) {
    case TEP_PRINT_FIELD:
      return arg->field.name;
    case TEP_PRINT_TYPE:
      return labelled_field(arg->typecast.item, depth + 1);
    case TEP_PRINT_DYNAMIC_ARRAY:
      return arg->dynarray.field == nullptr ? nullptr : arg->dynarray.field->name;
    case TEP_PRINT_OP: {
      const char* left = labelled_field(arg->op.left, depth + 1);
      return left != nullptr ? left : labelled_field(arg->op.right, depth + 1);
    }
    case TEP_PRINT_FUNC:
      for (const auto* item = arg->func.args; item != nullptr; item = item->next) {
        if (const char* name = labelled_field(item, depth + 1)) return name;
      }
      return nullptr;
    default:
      return nullptr;
  }
}

void add_labels(const tep_print_arg* field, const tep_print_flag_sym* symbols, bool is_flag,
                std::vector<EnumLabel>& out) {
  const char* name = labelled_field(field, 0);
  if (name == nullptr) return;
  for (const auto* symbol = symbols; symbol != nullptr; symbol = symbol->next) {
    if (symbol->value == nullptr || symbol->str == nullptr) continue;
    char* end = nullptr;
    // Bit 63 and the like do not fit in a signed number.
    auto value = symbol->value[0] == '-'
                           ? std::strtoll(symbol->value, &end, 0)
                           : static_cast<long long>(std::strtoull(symbol->value, &end, 0));
    if (end == symbol->value) continue;
    if (const auto known = unresolved_value(symbol->str)) value = static_cast<long long>(*known);
    out.push_back({.field = name, .value = value, .label = symbol->str, .is_flag = is_flag});
  }
}

// __print_symbolic and __print_flags, wherever they stand in the print format.
void collect_labels(const tep_print_arg* arg, int depth, std::vector<EnumLabel>& out) {
  if (depth > kMaxPrintDepth) return;
  for (; arg != nullptr; arg = arg->next) {
    const auto inside = [&](const tep_print_arg* part) { collect_labels(part, depth + 1, out); };
    switch (arg->type) {
      case TEP_PRINT_SYMBOL:
        add_labels(arg->symbol.field, arg->symbol.symbols, false, out);
        inside(arg->symbol.field);
        break;
      case TEP_PRINT_FLAGS:
        add_labels(arg->flags.field, arg->flags.flags, true, out);
        inside(arg->flags.field);
        break;
      case TEP_PRINT_TYPE:
        inside(arg->typecast.item);
        break;
      case TEP_PRINT_OP:  // ?: too, whose right side is an op ':' of both values
        inside(arg->op.left);
        inside(arg->op.right);
        break;
      case TEP_PRINT_FUNC:
        inside(arg->func.args);
        break;
      case TEP_PRINT_HEX:
      case TEP_PRINT_HEX_STR:
        inside(arg->hex.field);
        inside(arg->hex.size);
        break;
      case TEP_PRINT_INT_ARRAY:
        inside(arg->int_array.field);
        inside(arg->int_array.count);
        inside(arg->int_array.el_size);
        break;
      case TEP_PRINT_DYNAMIC_ARRAY:
        inside(arg->dynarray.index);
        break;
      case TEP_PRINT_NULL:  // these have no parts
      case TEP_PRINT_ATOM:
      case TEP_PRINT_FIELD:
      case TEP_PRINT_STRING:
      case TEP_PRINT_BSTRING:
      case TEP_PRINT_BITMASK:
      case TEP_PRINT_DYNAMIC_ARRAY_LEN:
      case TEP_PRINT_CPUMASK:
        break;
    }
  }
}

}  // namespace

std::optional<std::uint64_t> unresolved_value(std::string_view label) {
  // include/linux/mmzone.h: enum vmscan_throttle_state
  constexpr std::pair<std::string_view, std::uint64_t> kFlags[] = {
      {"VMSCAN_THROTTLE_WRITEBACK", 1U << 0},
      {"VMSCAN_THROTTLE_ISOLATED", 1U << 1},
      {"VMSCAN_THROTTLE_NOPROGRESS", 1U << 2},
      {"VMSCAN_THROTTLE_CONGESTED", 1U << 3},
  };
  for (const auto& [name, value] : kFlags) {
    if (name == label) return value;
  }
  return std::nullopt;
}

bool add_fields(const tep_event& event, std::uint32_t long_bytes, EventPlan& plan) {
  const PrintUses uses = scan_print(plan.text);
  NamesTaken taken = lead_column_names();
  for (const auto* f = event.format.fields; f != nullptr; f = f->next) {
    if (plan.fields.size() >= kMaxFields || f->offset < 0 || f->size < 0 || f->name == nullptr) {
      return false;
    }
    FieldPlan field;
    field.name = f->name;
    field.type = f->type == nullptr ? "" : f->type;
    field.offset = static_cast<std::uint32_t>(f->offset);
    field.bytes = static_cast<std::uint32_t>(f->size);
    set_kind(*f, long_bytes, field);
    field.rendering = rendering_of(field, uses);
    field.is_symbol = uses.symbols.contains(field.name);
    field.is_signed = (f->flags & TEP_FIELD_IS_SIGNED) != 0;
    if (field.offset > kMaxRecordBytes || field.bytes > kMaxRecordBytes) return false;
    field.column = event_column_name(field.name, taken);
    plan.fields.push_back(std::move(field));
  }
  if (plan.system == "ftrace" && !plan.fields.empty()) adapt_ftrace_entry(plan);
  for (const auto& field : plan.fields) plan.min_bytes = std::max(plan.min_bytes, field.end());
  return is_beside(plan);
}

bool read_fields(const tep_event& event, std::vector<FieldPlan>& out) {
  constexpr std::uint32_t kLongBytes = 8;  // of no matter: no record is read
  EventPlan plan;
  const bool all_read = add_fields(event, kLongBytes, plan);
  out = std::move(plan.fields);
  return all_read;
}

std::vector<EnumLabel> read_labels(const tep_event& event) {
  std::vector<EnumLabel> labels;
  collect_labels(event.print_fmt.args, 0, labels);
  return labels;
}

}  // namespace wbscope
