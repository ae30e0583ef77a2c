// SPDX-License-Identifier: Apache-2.0
// TextSink: what the reader of text gives its records to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/value_writer.h"

namespace wbscope {

class TextSink {
 public:
  virtual ~TextSink() = default;

  // Whether records of this time are to be read at all. Asked for each record,
  // from the first one on.
  [[nodiscard]] virtual bool selects(std::int64_t ts) = 0;

  // Whether records of the event are to be loaded, or only counted.
  [[nodiscard]] virtual bool wanted(std::string_view system, std::string_view name) = 0;

  // Whether they have a column common_flags.
  [[nodiscard]] virtual bool keeps_flags(std::string_view system, std::string_view name) = 0;

  // As those of ValueWriter.
  [[nodiscard]] virtual std::uint32_t event(std::string_view system, std::string_view name) = 0;
  [[nodiscard]] virtual std::uint32_t field(std::uint32_t event, const ValueField& field) = 0;
  virtual void describe(std::uint32_t event, std::string format,
                        std::vector<EnumLabel> labels) = 0;
  virtual void write(std::uint32_t event, std::int64_t ts, std::uint32_t cpu, std::int32_t tid,
                     std::span<const ValueWriter::Cell> cells) = 0;
  virtual void count(std::uint32_t event, std::int64_t ts, std::int32_t tid) = 0;
  virtual void name_task(std::int32_t tid, std::string_view comm) = 0;

  virtual void lost(std::int64_t ts, std::uint32_t cpu, std::optional<std::uint64_t> count) = 0;
};

}  // namespace wbscope
