// SPDX-License-Identifier: Apache-2.0
// What the tables of events have besides the fields, as the front end says it in JSON.
#pragma once

#include <string>

#include "format/event_catalog.h"
#include "sink/event_index.h"
#include "sink/previous_row.h"

namespace wbscope {

struct LoadPlan {
  PreviousChoice previous;  // events with a column prev_seq
  EventIndexes indexes;     // of event tables
  EventsWithFlags flags;    // events with a column common_flags
};

// An object with one for each event, of which each member may be missing:
//   {"SYSTEM:NAME": {
//      "previous": "tid",       column prev_seq: the seq of the row before, of the same
//                               thread; "any": of any
//      "group": "throttle",     that row may be of another event of the group
//      "repeats": ["bdi"],      column repeats_count: how many rows before it, one after
//                               the other, have the same values of these fields
//      "context": {"SYSTEM:OTHER": ["nr_dirty"]},
//                               and the same values of that event, the last of the
//                               thread; without fields: it did not occur in between
//      "flags": true,           column common_flags: in which context it fired
//      "indexes": [{"columns": ["tid", "pause"], "where": "pause > 0"}]}}
// name is what error messages call it. Raises: Error, exit 2.
LoadPlan parse_load_plan(const std::string& json, const std::string& name);

}  // namespace wbscope
