// SPDX-License-Identifier: Apache-2.0
// How each event of a trace goes into a Perfetto trace: in Perfetto's own
// message, or as a generic event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/event_catalog.h"

namespace wbscope {

struct FieldShape {
  enum class How : std::uint8_t {
    kNumber,       // a varint
    kDevice,       // dev_t, as user space numbers devices
    kText,         // text; bytes as hexadecimal digits
    kNumbers,      // an array as numbers of a repeated field
    kSymbols,      // the names of the addresses in the field, as text
  };
  std::uint32_t field = 0;   // in EventPlan::fields
  std::uint32_t number = 0;  // in the message
  How how = How::kNumber;
  bool is_symbol = false;  // the trace interns a name for the number
  std::string name;        // in the older form of generic events
};

struct EventShape {
  enum class Form : std::uint8_t {
    kOwn,      // a message of Perfetto's
    kGeneric,  // described by a descriptor
    kNamed,    // the older form: each record names its event and fields
  };
  Form form = Form::kNamed;
  std::uint32_t number = 0;  // in FtraceEvent
  bool is_simple = false;    // all fields are plain numbers
  std::vector<FieldShape> fields;
  std::string name;                   // kNamed
  std::string descriptor;             // kGeneric: a GenericEventDescriptor
  std::vector<std::string> left_out;  // fields that have no place in the message
};

// When a record goes out in the other shape.
enum class OtherShape : std::uint8_t {
  kNever,
  kUnlessMark,    // text that is no mark of atrace's
  kUnlessChained  // switches of a CPU that do not follow each other
};

struct EventShapes {
  EventShape usual;
  EventShape other;
  OtherShape when = OtherShape::kNever;
};

struct ShapeOptions {
  bool compat = false;       // generic events in the older form
  bool has_symbols = false;  // addresses get names where the format says they are code
};

// For each event of the catalog. first_number: of the first generic event; it
// becomes the number behind the last.
[[nodiscard]] std::vector<EventShapes> shape_events(const EventCatalog& catalog,
                                                    const ShapeOptions& options,
                                                    std::uint32_t& first_number);

}  // namespace wbscope
