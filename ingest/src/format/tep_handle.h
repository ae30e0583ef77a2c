// SPDX-License-Identifier: Apache-2.0
// What the files of format/ share of libtraceevent; included nowhere else.
#pragma once

#include <traceevent/event-parse.h>

#include <memory>
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

// Only the fields, of an event with 8 bytes a long.
[[nodiscard]] bool read_fields(const tep_event& event, std::vector<FieldPlan>& out);

// __print_symbolic and __print_flags, wherever they stand in the print format.
[[nodiscard]] std::vector<EnumLabel> read_labels(const tep_event& event);

}  // namespace wbscope
