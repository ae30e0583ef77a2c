// SPDX-License-Identifier: Apache-2.0
// Event formats of a trace as plans for reading records.
#include "format/event_catalog.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <set>

#include "base/child_process.h"
#include "base/names.h"
#include "format/tep_handle.h"

namespace wbscope {
namespace {

constexpr std::size_t kMaxFields = 512;
constexpr std::uint32_t kMaxRecordBytes = 1u << 16;
constexpr int kMaxPrintDepth = 64;
constexpr std::uint32_t kMaxEventId = 65535;
constexpr int kMaxDeaths = 32;

// The rest of the line that starts with key, for formats that do not parse.
std::string_view line_value(std::string_view text, std::string_view key) {
  for (std::size_t at = 0; at < text.size();) {
    auto end = text.find('\n', at);
    if (end == std::string_view::npos) end = text.size();
    const auto line = text.substr(at, end - at);
    if (line.starts_with(key)) {
      const auto value = line.substr(key.size());
      const auto first = value.find_first_not_of(" \t");
      return first == std::string_view::npos ? std::string_view{} : value.substr(first);
    }
    at = end + 1;
  }
  return {};
}

bool is_char_type(std::string_view type) {
  return type.find("char") != std::string_view::npos &&
         type.find("unsigned") == std::string_view::npos;
}

FieldKind field_kind(const tep_format_field& field) {
  const std::string_view type = field.type == nullptr ? "" : field.type;
  const bool dynamic = (field.flags & (TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_RELATIVE)) != 0;
  const bool relative = (field.flags & TEP_FIELD_IS_RELATIVE) != 0;
  const auto element = field.elementsize;
  const bool integers = element == 2 || element == 4 || element == 8;
  if (dynamic) {
    if (field.size != 4) return FieldKind::kBytes;
    if (is_char_type(type)) return relative ? FieldKind::kRelText : FieldKind::kDynText;
    return relative ? FieldKind::kRelArray : FieldKind::kDynArray;
  }
  if ((field.flags & TEP_FIELD_IS_ARRAY) != 0) {
    if (is_char_type(type)) return field.size == 0 ? FieldKind::kRestText : FieldKind::kText;
    if (integers && field.size > 0 && static_cast<unsigned>(field.size) % element == 0) {
      return FieldKind::kArray;
    }
    return FieldKind::kBytes;
  }
  if (field.size == 1 || field.size == 2 || field.size == 4 || field.size == 8) {
    return FieldKind::kInteger;
  }
  // ftrace:print of old kernels says "char buf; size:0".
  if (field.size == 0 && is_char_type(type)) return FieldKind::kRestText;
  return FieldKind::kBytes;
}

const char* labelled_field(const tep_print_arg* arg, int depth) {
  if (arg == nullptr || depth > kMaxPrintDepth) return nullptr;
  switch (arg->type) {
    case TEP_PRINT_FIELD:
      return arg->field.name;
    case TEP_PRINT_TYPE:
      return labelled_field(arg->typecast.item, depth + 1);
    case TEP_PRINT_OP: {
      const char* left = labelled_field(arg->op.left, depth + 1);
      return left != nullptr ? left : labelled_field(arg->op.right, depth + 1);
    }
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
    const std::int64_t value = std::strtoll(symbol->value, &end, 0);
    if (end == symbol->value) continue;
    out.push_back({.field = name, .value = value, .label = symbol->str, .is_flag = is_flag});
  }
}

// __print_symbolic and __print_flags, wherever they stand in the print format.
void collect_labels(const tep_print_arg* arg, int depth, std::vector<EnumLabel>& out) {
  for (; arg != nullptr && depth <= kMaxPrintDepth; arg = arg->next) {
    switch (arg->type) {
      case TEP_PRINT_SYMBOL:
        add_labels(arg->symbol.field, arg->symbol.symbols, false, out);
        break;
      case TEP_PRINT_FLAGS:
        add_labels(arg->flags.field, arg->flags.flags, true, out);
        break;
      case TEP_PRINT_TYPE:
        collect_labels(arg->typecast.item, depth + 1, out);
        break;
      case TEP_PRINT_OP:
        collect_labels(arg->op.left, depth + 1, out);
        collect_labels(arg->op.right, depth + 1, out);
        break;
      default:
        break;
    }
  }
}

bool add_fields(const tep_event& event, EventPlan& plan) {
  NamesTaken taken = lead_column_names();
  for (const auto* f = event.format.fields; f != nullptr; f = f->next) {
    if (plan.fields.size() >= kMaxFields || f->offset < 0 || f->size < 0 || f->name == nullptr) {
      return false;
    }
    FieldPlan field;
    field.name = f->name;
    field.type = f->type == nullptr ? "" : f->type;
    field.kind = field_kind(*f);
    field.offset = static_cast<std::uint32_t>(f->offset);
    field.bytes = static_cast<std::uint32_t>(f->size);
    field.element_bytes = f->elementsize == 0 ? 1 : f->elementsize;
    field.is_signed = (f->flags & TEP_FIELD_IS_SIGNED) != 0;
    if (field.offset > kMaxRecordBytes || field.bytes > kMaxRecordBytes) return false;
    field.column = event_column_name(field.name, taken);
    plan.min_bytes = std::max(plan.min_bytes, field.offset + field.bytes);
    plan.fields.push_back(std::move(field));
  }
  return true;
}

void make_raw(EventPlan& plan, const CommonFields& common) {
  plan.status = FormatStatus::kRaw;
  plan.labels.clear();
  plan.fields.clear();
  plan.min_bytes = common.end;
  plan.fields.push_back({.name = "payload",
                         .column = "payload",
                         .type = "",
                         .kind = FieldKind::kBytes,
                         .offset = common.end,
                         .bytes = 0,
                         .element_bytes = 1,
                         .is_signed = false});
}

void read_common_fields(const tep_event& event, CommonFields& common) {
  for (const auto* f = event.format.common_fields; f != nullptr; f = f->next) {
    if (f->name == nullptr || f->offset < 0 || f->offset > 64) continue;
    const std::string_view name = f->name;
    if (name == "common_type" && (f->size == 2 || f->size == 4)) {
      common.type_offset = static_cast<std::uint32_t>(f->offset);
      common.type_bytes = static_cast<std::uint32_t>(f->size);
    }
    if (name == "common_pid" && f->size == 4) {
      common.pid_offset = static_cast<std::uint32_t>(f->offset);
    }
  }
  common.end = std::max(common.type_offset + common.type_bytes, common.pid_offset + 4);
}

PageLayout read_page_layout(tep_handle* tep, const TraceInfo& info, bool trusted) {
  PageLayout layout;
  layout.commit_bytes = info.long_bytes;
  std::string text = trusted ? info.header_page : std::string();
  if (!text.empty() &&
      tep_parse_header_page(tep, text.data(), text.size(), static_cast<int>(info.long_bytes)) == 0) {
    const int bytes = tep_get_header_page_size(tep);
    if (bytes == 4 || bytes == 8) layout.commit_bytes = static_cast<std::uint32_t>(bytes);
  }
  layout.commit_offset = 8;
  layout.data_offset = layout.commit_offset + layout.commit_bytes;
  return layout;
}

// Id and name for a format that libtraceevent gave up on.
bool read_head_by_hand(std::string_view text, EventPlan& plan) {
  const auto name = line_value(text, "name:");
  const auto id = line_value(text, "ID:");
  if (name.empty() || id.empty()) return false;
  plan.name = std::string(name);
  const auto [end, problem] = std::from_chars(id.data(), id.data() + id.size(), plan.id);
  return problem == std::errc() && end != id.data();
}

// How much of a format libtraceevent is shown; header_page counts as the last.
enum class Trust : std::uint8_t { kWhole, kWithoutPrint, kNothing };

// The text without its print format.
std::string_view without_print(std::string_view text) {
  const auto at = text.find("\nprint fmt:");
  return at == std::string_view::npos ? text : text.substr(0, at + 1);
}

EventCatalog parse_formats(const TraceInfo& info, const std::vector<Trust>& trust,
                           const Announce& announce) {
  const Tep tep = make_tep();
  tep_set_file_bigendian(tep.get(),
                         info.order == ByteOrder::kBig ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  EventCatalog catalog;
  const auto header_step = static_cast<std::uint32_t>(info.formats.size());
  announce(header_step);
  catalog.page = read_page_layout(tep.get(), info, trust[header_step] == Trust::kWhole);
  tep_set_long_size(tep.get(), static_cast<int>(catalog.page.commit_bytes));

  bool have_common = false;
  NamesTaken tables;
  std::set<std::string> seen;
  for (std::uint32_t i = 0; i < info.formats.size(); ++i) {
    const FormatText& format = info.formats[i];
    announce(i);
    EventPlan plan;
    plan.system = format.system;
    plan.text = format.text;
    tep_event* event = nullptr;  // owned by tep
    if (trust[i] != Trust::kNothing) {
      const std::string shown(trust[i] == Trust::kWhole ? std::string_view(format.text)
                                                        : without_print(format.text));
      (void)tep_parse_format(tep.get(), &event, shown.c_str(), shown.size(),
                             format.system.c_str());
    }
    // Its result does not tell; the flag does. Fields are counted only when all
    // of them were read.
    const bool failed = event != nullptr && (event->flags & TEP_EVENT_FL_FAILED) != 0;
    const bool has_fields = event != nullptr && (!failed || event->format.nr_fields > 0);
    if (has_fields && event->name != nullptr && event->id >= 0) {
      plan.name = event->name;
      plan.id = static_cast<std::uint32_t>(event->id);
      if (!have_common) read_common_fields(*event, catalog.common);
      have_common = true;
      if (failed || trust[i] != Trust::kWhole) plan.status = FormatStatus::kPartial;
      if (add_fields(*event, plan)) {
        collect_labels(event->print_fmt.args, 0, plan.labels);
      } else {
        make_raw(plan, catalog.common);
      }
    } else if (read_head_by_hand(format.text, plan)) {
      make_raw(plan, catalog.common);
    } else {
      continue;
    }
    if (plan.id > kMaxEventId || !seen.insert(plan.full_name()).second) continue;
    plan.table = event_table_name(plan.system, plan.name, tables);
    plan.min_bytes = std::max(plan.min_bytes, catalog.common.end);
    catalog.events.push_back(std::move(plan));
  }
  return catalog;
}

}  // namespace

Tep make_tep() {
  tep_set_loglevel(TEP_LOG_NONE);
  return Tep(tep_alloc());
}

bool read_fields(const tep_event& event, std::vector<FieldPlan>& out) {
  EventPlan plan;
  const bool all_read = add_fields(event, plan);
  out = std::move(plan.fields);
  return all_read;
}

std::vector<EnumLabel> read_labels(const tep_event& event) {
  std::vector<EnumLabel> labels;
  collect_labels(event.print_fmt.args, 0, labels);
  return labels;
}

EventCatalog build_event_catalog(const TraceInfo& info) {
  std::vector<Trust> trust(info.formats.size() + 1, Trust::kWhole);  // last: header_page
  // libtraceevent was made for the kernel's own text, and some damaged text
  // makes it crash. A child process tries first; a format that kills it is
  // shown again without its print format, then not at all.
  for (int deaths = 0;; ++deaths) {
    const auto died = step_that_dies(
        [&](const Announce& announce) { (void)parse_formats(info, trust, announce); });
    if (!died) break;
    trust[*died] = trust[*died] == Trust::kWhole ? Trust::kWithoutPrint : Trust::kNothing;
    if (deaths == kMaxDeaths) {
      std::fill(trust.begin(), trust.end(), Trust::kNothing);
      break;
    }
  }
  return parse_formats(info, trust, [](std::uint32_t) {});
}

}  // namespace wbscope
