// SPDX-License-Identifier: Apache-2.0
// A share of a trace's formats as plans, read by libtraceevent.
#include "format/format_share.h"

#include <algorithm>
#include <charconv>
#include <new>

#include "base/names.h"
#include "format/tep_handle.h"

namespace wbscope {
namespace {

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

void read_common_fields(const tep_event& event, CommonFields& common) {
  common.flags_offset.reset();
  common.preempt_offset.reset();
  std::uint32_t end = 0;
  for (const auto* f = event.format.common_fields; f != nullptr; f = f->next) {
    if (f->name == nullptr || f->offset < 0 || f->offset > 64) continue;
    const std::string_view name = f->name;
    const auto offset = static_cast<std::uint32_t>(f->offset);
    if (f->size > 0 && f->size <= 8) {
      end = std::max(end, offset + static_cast<std::uint32_t>(f->size));
    }
    if (name == "common_flags" && f->size == 1) common.flags_offset = offset;
    if (name == "common_preempt_count" && f->size == 1) common.preempt_offset = offset;
    if (name == "common_type" && (f->size == 2 || f->size == 4)) {
      common.type_offset = static_cast<std::uint32_t>(f->offset);
      common.type_bytes = static_cast<std::uint32_t>(f->size);
    }
    if (name == "common_pid" && f->size == 4) {
      common.pid_offset = static_cast<std::uint32_t>(f->offset);
    }
  }
  common.end = std::max(common.type_offset + common.type_bytes, common.pid_offset + 4);
  common.payload = std::max(common.end, end);
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

// The text without its print format.
std::string_view without_print(std::string_view text) {
  const auto at = text.find("\nprint fmt:");
  return at == std::string_view::npos ? text : text.substr(0, at + 1);
}

// A format that is not there as fields: its bytes are one column.
void make_raw(EventPlan& plan) {
  plan.status = FormatStatus::kRaw;
  plan.labels.clear();
  plan.fields.clear();  // added when all formats have been seen
}

}  // namespace

Tep make_tep() {
  tep_set_loglevel(TEP_LOG_NONE);
  return Tep(tep_alloc());
}

FormatShare read_formats(const TraceInfo& info, const std::vector<Trust>& trust,
                         Stride stride, const Announce& announce) {
  const Tep tep = make_tep();
  if (!tep) throw std::bad_alloc();
  tep_set_file_bigendian(tep.get(),
                         info.order == ByteOrder::kBig ? TEP_BIG_ENDIAN : TEP_LITTLE_ENDIAN);
  FormatShare share;
  const auto header_step = static_cast<std::uint32_t>(info.formats.size());
  announce(header_step);
  share.page = read_page_layout(tep.get(), info, trust[header_step] == Trust::kWhole);
  tep_set_long_size(tep.get(), static_cast<int>(share.page.commit_bytes));

  for (std::size_t place = stride.first; place < info.formats.size(); place += stride.step) {
    const auto i = static_cast<std::uint32_t>(place);
    const FormatText& format = info.formats[i];
    announce(i);
    EventPlan plan;
    plan.system = std::string(common_system(format.system));
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
      if (!share.common) {
        read_common_fields(*event, share.common.emplace(PlacedCommon{.format = i, .fields = {}}).fields);
      }
      if (failed || trust[i] != Trust::kWhole) plan.status = FormatStatus::kPartial;
      if (add_fields(*event, share.page.commit_bytes, plan)) {
        plan.labels = read_labels(*event);
      } else {
        make_raw(plan);
      }
    } else if (read_head_by_hand(format.text, plan)) {
      make_raw(plan);
    } else {
      continue;
    }
    share.plans.push_back({.format = i, .plan = std::move(plan)});
  }
  return share;
}

}  // namespace wbscope
