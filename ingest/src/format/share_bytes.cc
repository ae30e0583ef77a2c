// SPDX-License-Identifier: Apache-2.0
// A share of formats as bytes and back. Each struct is described once, for both
// ways. The bytes come from a process that hostile text may have misled, so
// every length and every number with few values is checked.
#include <cstring>
#include <type_traits>

#include "base/byte_reader.h"
#include "format/format_share.h"

namespace wbscope {
namespace {

class Writer {
 public:
  [[nodiscard]] std::string take() { return std::move(bytes_); }

  template <typename T>
  bool number(const T& value) {
    static_assert(std::is_integral_v<T>);
    bytes_.append(as_chars(&value), sizeof(value));
    return true;
  }
  template <typename T>
  bool choice(const T& value, T /*last*/) {
    return number(static_cast<std::uint8_t>(value));
  }
  bool text(const std::string& text) {
    number(static_cast<std::uint64_t>(text.size()));
    bytes_ += text;
    return true;
  }
  template <typename T, typename Describe>
  bool list(const std::vector<T>& items, Describe describe) {
    number(static_cast<std::uint64_t>(items.size()));
    for (const T& item : items) describe(item);
    return true;
  }
  template <typename T, typename Describe>
  bool maybe(const std::optional<T>& value, Describe describe) {
    choice(value.has_value(), true);
    return !value || describe(*value);
  }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  [[nodiscard]] bool is_at_end() const noexcept { return left_.empty(); }

  template <typename T>
  bool number(T& value) {
    static_assert(std::is_integral_v<T>);
    if (left_.size() < sizeof(value)) return false;
    std::memcpy(&value, left_.data(), sizeof(value));
    left_.remove_prefix(sizeof(value));
    return true;
  }
  template <typename T>
  bool choice(T& value, T last) {
    std::uint8_t read = 0;
    if (!number(read) || read > static_cast<std::uint8_t>(last)) return false;
    value = static_cast<T>(read);
    return true;
  }
  bool text(std::string& text) {
    std::uint64_t length = 0;
    if (!number(length) || length > left_.size()) return false;
    text.assign(left_.substr(0, length));
    left_.remove_prefix(length);
    return true;
  }
  // No item is shorter than a byte, so no count makes it take more than there is.
  template <typename T, typename Describe>
  bool list(std::vector<T>& items, Describe describe) {
    std::uint64_t count = 0;
    if (!number(count) || count > left_.size()) return false;
    for (; count > 0; --count) {
      if (!describe(items.emplace_back())) return false;
    }
    return true;
  }
  template <typename T, typename Describe>
  bool maybe(std::optional<T>& value, Describe describe) {
    bool is_there = false;
    if (!choice(is_there, true)) return false;
    return !is_there || describe(value.emplace());
  }

 private:
  std::string_view left_;
};

// Bytes is a Writer and Share const, or Bytes is a Reader.
template <typename Bytes, typename Share>
bool describe(Bytes& bytes, Share& share) {
  const auto number = [&](auto& value) { return bytes.number(value); };
  const auto field = [&](auto& f) {
    return bytes.text(f.name) && bytes.text(f.column) && bytes.text(f.type) &&
           bytes.choice(f.kind, FieldKind::kPrintk) && number(f.offset) && number(f.bytes) &&
           number(f.element_bytes) && bytes.choice(f.is_signed, true) &&
           bytes.choice(f.rendering, Rendering::kSockaddr) && bytes.choice(f.is_symbol, true);
  };
  const auto label = [&](auto& l) {
    return bytes.text(l.field) && number(l.value) && bytes.text(l.label) &&
           bytes.choice(l.is_flag, true);
  };
  const auto plan = [&](auto& placed) {
    auto& p = placed.plan;
    return number(placed.format) && number(p.id) && bytes.text(p.name) &&
           bytes.choice(p.status, FormatStatus::kRaw) && number(p.min_bytes) &&
           bytes.list(p.fields, field) && bytes.list(p.labels, label);
  };
  const auto common = [&](auto& placed) {
    auto& c = placed.fields;
    return number(placed.format) && number(c.type_offset) && number(c.type_bytes) && number(c.pid_offset) &&
           number(c.end) && number(c.payload) && bytes.maybe(c.flags_offset, number) &&
           bytes.maybe(c.preempt_offset, number);
  };
  auto& page = share.page;
  return number(page.commit_offset) && number(page.commit_bytes) && number(page.data_offset) &&
         bytes.maybe(share.common, common) && bytes.list(share.plans, plan);
}

bool is_array(FieldKind kind) {
  return kind == FieldKind::kArray || kind == FieldKind::kRestArray ||
         kind == FieldKind::kDynArray || kind == FieldKind::kRelArray;
}

bool is_possible(const EventPlan& plan) {
  for (const auto& field : plan.fields) {
    if (field.offset > kMaxRecordBytes || field.bytes > kMaxRecordBytes) return false;
    if (field.end() > plan.min_bytes) return false;
    if (is_array(field.kind) && field.element_bytes == 0) return false;
  }
  return true;
}

bool is_possible(const CommonFields& common) {
  return common.payload <= kMaxRecordBytes && common.end <= common.payload &&
         common.type_offset < common.end && common.pid_offset < common.end &&
         (common.type_bytes == 2 || common.type_bytes == 4) &&
         common.type_offset + common.type_bytes <= common.end &&
         common.pid_offset + 4 <= common.end && common.flags_offset < common.payload &&
         common.preempt_offset < common.payload;
}

}  // namespace

std::string to_bytes(const FormatShare& share) {
  Writer writer;
  (void)describe(writer, share);
  return writer.take();
}

std::optional<FormatShare> to_share(std::string_view bytes, std::size_t formats) {
  FormatShare share;
  Reader reader(bytes);
  if (!describe(reader, share) || !reader.is_at_end()) return std::nullopt;
  if (share.common && !is_possible(share.common->fields)) return std::nullopt;
  for (const auto& [format, plan] : share.plans) {
    if (format >= formats || !is_possible(plan)) return std::nullopt;
  }
  return share;
}

}  // namespace wbscope
