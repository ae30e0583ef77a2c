// SPDX-License-Identifier: Apache-2.0
// EventEncoder: one record as the message that an FtraceEvent holds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "format/event_catalog.h"
#include "format/printk_text.h"
#include "perfetto/event_shape.h"
#include "perfetto/proto_buffer.h"
#include "sink/field_reader.h"

namespace wbscope {

// Each thread has its own.
class EventEncoder {
 public:
  // The name of an address for a field that shows names.
  using NameOf = std::function<std::string(std::uint64_t address)>;
  // An address for which the trace has to intern a name.
  using OnSymbol = std::function<void(std::uint64_t address)>;

  // The references outlive it.
  EventEncoder(const EventCatalog& catalog, ByteOrder order, const PrintkFormats& printk,
               NameOf name_of);

  // The message's bytes, valid until the next call.
  [[nodiscard]] std::string_view encode(const EventPlan& plan, const EventShape& shape,
                                        std::span<const std::byte> record,
                                        const OnSymbol& on_symbol);
  // The text of a text field of this name; "" when there is none.
  [[nodiscard]] std::string_view text_of(const EventPlan& plan, std::string_view field,
                                         std::span<const std::byte> record);

  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

 private:
  // Where FieldReader puts a value.
  struct Out {
    enum class Kind : std::uint8_t { kNull, kNumber, kText } kind = Kind::kNull;
    std::int64_t value = 0;
    std::string_view chars;
    std::string kept;
    std::vector<std::uint64_t> addresses;
    Counters* counters = nullptr;

    void integer(std::int64_t number) {
      kind = Kind::kNumber;
      value = number;
    }
    void text(std::string_view text);
    void blob(std::span<const std::byte> bytes);
    void null() { kind = Kind::kNull; }
    [[nodiscard]] std::string& scratch() {
      kept.clear();
      return kept;
    }
    void made(const std::string& text) {
      kind = Kind::kText;
      chars = text;
    }
    void symbol(std::uint64_t address) { addresses.push_back(address); }
  };

  void read(const EventPlan& plan, const FieldPlan& field, std::span<const std::byte> record);
  void put(const FieldShape& shape, const OnSymbol& on_symbol);
  void put_numbers(const FieldPlan& field, const FieldShape& shape,
                   std::span<const std::byte> record);
  void put_named(const FieldPlan& field, const FieldShape& shape);
  void name_addresses();

  ByteOrder order_;
  Counters counters_;
  FieldReader<Out> reader_;
  NameOf name_of_;
  Out out_;
  ProtoBuffer body_;
  ProtoBuffer nested_;
  std::string names_;
};

// Whether readers understand the text as a mark of atrace ("B|12|name"). What
// is none of them they count as an error.
[[nodiscard]] bool is_atrace_mark(std::string_view text) noexcept;

}  // namespace wbscope
