// SPDX-License-Identifier: Apache-2.0
// What the files of format/ share of libtraceevent; included nowhere else.
#pragma once

#include <traceevent/event-parse.h>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/event_catalog.h"

namespace wbscope {

struct TepDeleter {
  void operator()(tep_handle* tep) const noexcept { tep_free(tep); }
};
using Tep = std::unique_ptr<tep_handle, TepDeleter>;

// A quiet handle.
[[nodiscard]] Tep make_tep();

// Adds the fields of a format to a plan that has its system and its text. False
// when it has too many, or one that no record can have.
[[nodiscard]] bool add_fields(const tep_event& event, std::uint32_t long_bytes, EventPlan& plan);

// The value of a label's enum, by the kernel's own header: of one that it leaves unresolved in
// print formats, for want of TRACE_DEFINE_ENUM, which libtraceevent takes for 0.
[[nodiscard]] std::optional<std::uint64_t> unresolved_value(std::string_view label);

// Only the fields, of an event with 8 bytes a long.
[[nodiscard]] bool read_fields(const tep_event& event, std::vector<FieldPlan>& out);

// __print_symbolic and __print_flags, wherever they stand in the print format.
[[nodiscard]] std::vector<EnumLabel> read_labels(const tep_event& event);

}  // namespace wbscope
