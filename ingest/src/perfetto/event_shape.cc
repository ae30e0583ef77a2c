// SPDX-License-Identifier: Apache-2.0
// How each event of a trace goes into a Perfetto trace.
#include "perfetto/event_shape.h"

#include <algorithm>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <string_view>

#include "base/utf8.h"
#include "perfetto/known_events.h"
#include "perfetto/protos.h"

namespace wbscope {
namespace {

using How = FieldShape::How;
using protozero::pbf_writer;

bool is_text(const FieldPlan& field) {
  if (field.rendering == Rendering::kBitmask || field.rendering == Rendering::kCpumask) return true;
  switch (field.kind) {
    case FieldKind::kText:
    case FieldKind::kRestText:
    case FieldKind::kDynText:
    case FieldKind::kRelText:
      return true;
    default:
      return false;
  }
}

bool is_numbers(const FieldPlan& field) {
  if (field.rendering != Rendering::kPlain || field.element_bytes < 2) return false;
  switch (field.kind) {
    case FieldKind::kArray:
    case FieldKind::kRestArray:
    case FieldKind::kDynArray:
    case FieldKind::kRelArray:
      return true;
    default:
      return false;
  }
}

bool is_device(const FieldPlan& field) {
  return field.kind == FieldKind::kInteger && field.type.starts_with("dev_t");
}

// How the field goes into a field of that type; nothing when it does not fit.
std::optional<How> fit(const FieldPlan& field, KnownField::Type type) {
  switch (type) {
    case KnownField::Type::kNumber:
      if (field.kind != FieldKind::kInteger) return std::nullopt;
      return is_device(field) ? How::kDevice : How::kNumber;
    case KnownField::Type::kNumbers:
      return is_numbers(field) ? std::optional(How::kNumbers) : std::nullopt;
    case KnownField::Type::kText:
      return is_text(field) ? std::optional(How::kText) : std::nullopt;
  }
  return std::nullopt;
}

bool is_simple(const EventShape& shape) {
  return std::all_of(shape.fields.begin(), shape.fields.end(), [](const FieldShape& field) {
    return field.how == How::kNumber && !field.is_symbol;
  });
}

// The event in the message that Perfetto has for it, if all of it fits, or what
// readers make tables of.
std::optional<EventShape> own_shape(const EventPlan& plan) {
  if (plan.status != FormatStatus::kParsed && plan.status != FormatStatus::kPartial) return {};
  const auto known = find_known_event(plan.name);
  if (!known) return std::nullopt;
  EventShape shape{.form = EventShape::Form::kOwn,
                   .number = known->number,
                   .fields = {},
                   .name = {},
                   .descriptor = {},
                   .left_out = {}};
  std::size_t needed = 0;
  for (std::uint32_t i = 0; i < plan.fields.size(); ++i) {
    const FieldPlan& field = plan.fields[i];
    const KnownField* place = known->field(field.name);
    const auto how = place == nullptr ? std::nullopt : fit(field, place->type);
    if (!how) {
      if (!known->fills_tables) return std::nullopt;
      shape.left_out.push_back(field.name);
      continue;
    }
    if (place->is_needed) ++needed;
    shape.fields.push_back({.field = i,
                            .number = place->number,
                            .how = *how,
                            .is_symbol = place->is_symbol,
                            .name = {}});
  }
  const auto wanted = std::count_if(known->fields.begin(), known->fields.end(),
                                    [](const auto& field) { return field.is_needed; });
  if (needed != static_cast<std::size_t>(wanted)) return std::nullopt;
  std::sort(shape.fields.begin(), shape.fields.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  shape.is_simple = is_simple(shape);
  return shape;
}

// A field of the name is the name's own, whatever else wants it.
bool has_field(const EventPlan& plan, std::string_view name) {
  return std::any_of(plan.fields.begin(), plan.fields.end(),
                     [&](const auto& field) { return field.column == name; });
}

std::vector<FieldShape> generic_fields(const EventPlan& plan, bool has_symbols) {
  std::vector<FieldShape> fields;
  const auto add = [&fields](std::uint32_t field, How how, std::string name) {
    fields.push_back({.field = field,
                      .number = static_cast<std::uint32_t>(fields.size() + 1),
                      .how = how,
                      .is_symbol = false,
                      .name = replace_invalid_utf8(name)});
  };
  for (std::uint32_t i = 0; i < plan.fields.size(); ++i) {
    const FieldPlan& field = plan.fields[i];
    const bool number = field.kind == FieldKind::kInteger;
    add(i, is_device(field) ? How::kDevice : number ? How::kNumber : How::kText, field.name);
  }
  if (!has_symbols) return fields;
  for (std::uint32_t i = 0; i < plan.fields.size(); ++i) {
    const std::string name = plan.fields[i].name + "_symbol";
    if (plan.fields[i].is_symbol && !has_field(plan, name)) add(i, How::kSymbols, name);
  }
  return fields;
}

std::string descriptor_of(const EventPlan& plan, const EventShape& shape) {
  using namespace protos::descriptor;
  std::string message;
  pbf_writer out(message);
  out.add_string(kMessageName, replace_invalid_utf8(plan.name));
  for (const auto& field : shape.fields) {
    const bool number = field.how == How::kNumber || field.how == How::kDevice;
    pbf_writer entry(out, kMessageField);
    entry.add_string(kName, field.name);
    entry.add_uint32(kNumber, field.number);
    entry.add_uint32(kLabel, kOptional);
    entry.add_uint32(kType, !number                              ? kString
                            : plan.fields[field.field].is_signed ? kInt64
                                                                 : kUint64);
  }
  std::string bytes;
  pbf_writer descriptor(bytes);
  descriptor.add_uint32(kFieldId, shape.number);
  descriptor.add_bytes(kEventDescriptor, message);
  descriptor.add_string(kGroupName, replace_invalid_utf8(plan.system));
  return bytes;
}

EventShape generic_shape(const EventPlan& plan, const ShapeOptions& options,
                         std::uint32_t& next_number) {
  EventShape shape;
  shape.fields = generic_fields(plan, options.has_symbols);
  shape.is_simple = is_simple(shape);
  const bool fits = shape.fields.size() <= protos::event::kMaxGenericField &&
                    next_number <= protos::event::kLastGeneric;
  if (options.compat || !fits) {
    shape.form = EventShape::Form::kNamed;
    shape.number = protos::event::kGeneric;
    shape.name = replace_invalid_utf8(plan.name);
    shape.is_simple = false;
    return shape;
  }
  shape.form = EventShape::Form::kGeneric;
  shape.number = next_number++;
  shape.descriptor = descriptor_of(plan, shape);
  return shape;
}

OtherShape other_shape(const KnownEvent& known) {
  if (known.name == "print") return OtherShape::kUnlessMark;
  if (known.name == "sched_switch") return OtherShape::kUnlessChained;
  return OtherShape::kNever;
}

}  // namespace

std::vector<EventShapes> shape_events(const EventCatalog& catalog, const ShapeOptions& options,
                                      std::uint32_t& first_number) {
  std::vector<EventShapes> all;
  all.reserve(catalog.events.size());
  for (const auto& plan : catalog.events) {
    EventShapes shapes;
    if (auto own = own_shape(plan)) {
      shapes.usual = std::move(*own);
      shapes.when = other_shape(*find_known_event(plan.name));
      if (shapes.when != OtherShape::kNever) {
        shapes.other = generic_shape(plan, options, first_number);
      }
    } else {
      shapes.usual = generic_shape(plan, options, first_number);
    }
    all.push_back(std::move(shapes));
  }
  return all;
}

}  // namespace wbscope
