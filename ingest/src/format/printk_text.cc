// SPDX-License-Identifier: Apache-2.0
// Texts of binary printk events.
#include "format/printk_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace wbscope {
namespace {

constexpr int kMaxWidth = 256;
constexpr std::size_t kMaxText = 64u << 10;
constexpr std::size_t kMaxFormats = 1u << 20;

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\' || at + 1 == text.size()) {
      out += text[at];
      continue;
    }
    switch (text[++at]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      default:  // a quote or a backslash
        out += text[at];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// One conversion, "%-10.3lld".
struct Conversion {
  std::string flags;
  int width = -1;
  int precision = -1;
  unsigned bytes = 4;
  char type = 0;
  std::string_view pointer;  // the letters behind %p
};

class Printer {
 public:
  Printer(std::string_view format, std::span<const std::byte> args, std::uint32_t long_bytes,
          ByteOrder order)
      : format_(format), args_(args), long_bytes_(long_bytes), order_(order) {}

  std::optional<std::string> run() {
    while (!format_.empty() && out_.size() < kMaxText) {
      const char c = take();
      if (c != '%') {
        out_ += c;
      } else if (format_.starts_with('%')) {
        out_ += take();
      } else if (!convert()) {
        return std::nullopt;
      }
    }
    return out_;
  }

 private:
  char take() {
    const char c = format_.empty() ? '\0' : format_.front();
    if (!format_.empty()) format_.remove_prefix(1);
    return c;
  }

  // Numbers are aligned to their size, those of 8 bytes to 4.
  std::optional<std::uint64_t> number(unsigned bytes) {
    const std::size_t border = std::min(bytes, 4u);
    const std::size_t at = (at_ + border - 1) / border * border;
    if (at > args_.size() || args_.size() - at < bytes) return std::nullopt;
    at_ = at + bytes;
    const std::byte* data = args_.data() + at;
    switch (bytes) {
      case 1:
        return load<std::uint8_t>(data, order_);
      case 2:
        return load<std::uint16_t>(data, order_);
      case 4:
        return load<std::uint32_t>(data, order_);
      default:
        return load<std::uint64_t>(data, order_);
    }
  }

  std::optional<std::string> text() {
    const auto rest = as_text(args_.subspan(std::min(at_, args_.size())));
    const auto end = rest.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    at_ += end + 1;
    return std::string(rest.substr(0, end));
  }

  // A width or precision: digits, or '*' and an argument.
  std::optional<int> size() {
    if (format_.starts_with('*')) {
      take();
      const auto value = number(4);
      if (!value) return std::nullopt;
      return std::clamp(static_cast<int>(static_cast<std::uint32_t>(*value)), -kMaxWidth,
                        kMaxWidth);
    }
    int value = 0;
    while (!format_.empty() && std::isdigit(static_cast<unsigned char>(format_.front())) != 0) {
      value = std::min(value * 10 + (take() - '0'), kMaxWidth);
    }
    return value;
  }

  bool convert() {
    Conversion spec;
    while (!format_.empty() && std::string_view("-+ #0").find(format_.front()) !=
                                   std::string_view::npos) {
      spec.flags += take();
      if (spec.flags.size() > 8) spec.flags.pop_back();
    }
    const bool has_width =
        !format_.empty() && std::string_view("*0123456789").find(format_.front()) !=
                                std::string_view::npos;
    if (has_width) {
      const auto width = size();
      if (!width) return false;
      spec.width = std::abs(*width);
      if (*width < 0) spec.flags += '-';
    }
    if (format_.starts_with('.')) {
      take();
      const auto precision = size();
      if (!precision) return false;
      spec.precision = *precision;
    }
    read_length(spec);
    spec.type = take();
    return print(spec);
  }

  void read_length(Conversion& spec) {
    while (!format_.empty()) {
      switch (format_.front()) {
        case 'h':
          spec.bytes = spec.bytes == 2 ? 1 : 2;
          break;
        case 'l':
          spec.bytes = longs_++ == 0 ? long_bytes_ : 8;
          break;
        case 'L':
        case 'q':
        case 'j':
          spec.bytes = 8;
          break;
        case 'z':
        case 'Z':
        case 't':
          spec.bytes = long_bytes_;
          break;
        default:
          longs_ = 0;
          return;
      }
      take();
    }
  }

  template <typename Value>
  void put(const Conversion& spec, const char* length, char type, Value value) {
    std::string format(1, '%');
    format += spec.flags;
    if (spec.width >= 0) format += std::to_string(spec.width);
    if (spec.precision >= 0) {
      format += '.';
      format += std::to_string(spec.precision);
    }
    format += length;
    format += type;
    char buffer[2 * kMaxWidth + 64];
    const int n = std::snprintf(buffer, sizeof(buffer), format.c_str(), value);
    const auto written = static_cast<std::size_t>(std::max(n, 0));
    out_.append(buffer, std::min(written, sizeof(buffer) - 1));
  }

  void put_text(const Conversion& spec, std::string value) {
    if (spec.precision >= 0) value = value.substr(0, static_cast<std::size_t>(spec.precision));
    const auto width = static_cast<std::size_t>(std::max(spec.width, 0));
    const std::string room(width > value.size() ? width - value.size() : 0, ' ');
    out_ += spec.flags.find('-') == std::string::npos ? room + value : value + room;
  }

  bool print(Conversion& spec) {
    switch (spec.type) {
      case 'd':
      case 'i': {
        const auto value = number(spec.bytes);
        if (!value) return false;
        const unsigned unused = 64 - 8 * spec.bytes;
        put(spec, "ll", 'd', static_cast<long long>(*value << unused) >> unused);
        return true;
      }
      case 'u':
      case 'o':
      case 'x':
      case 'X': {
        const auto value = number(spec.bytes);
        if (!value) return false;
        put(spec, "ll", spec.type, static_cast<unsigned long long>(*value));
        return true;
      }
      case 'c': {
        const auto value = number(1);
        if (!value) return false;
        put_text(spec, std::string(1, static_cast<char>(*value)));
        return true;
      }
      case 's': {
        auto value = text();
        if (!value) return false;
        put_text(spec, std::move(*value));
        return true;
      }
      case 'p':
        return print_pointer(spec);
      default:
        return false;
    }
  }

  // Most kinds of pointers were printed when they were recorded; those of
  // symbols, and all of them in older kernels, are kept as addresses.
  bool print_pointer(Conversion& spec) {
    std::size_t letters = 0;
    while (letters < format_.size() && is_letter(format_[letters])) ++letters;
    spec.pointer = format_.substr(0, letters);
    format_.remove_prefix(letters);
    const char kind = spec.pointer.empty() ? '\0' : spec.pointer.front();
    const bool symbol = (kind == 'f' || kind == 'F') && !spec.pointer.starts_with("fw");
    const bool address =
        kind == '\0' || symbol || std::string_view("SsxKe").find(kind) != std::string_view::npos;
    if (!address && at_ < args_.size() &&
        std::isprint(std::to_integer<unsigned char>(args_[at_])) != 0) {
      auto value = text();
      if (!value) return false;
      put_text(spec, std::move(*value));
      return true;
    }
    const auto value = number(long_bytes_);
    if (!value) return false;
    char digits[24];
    const int n = std::snprintf(digits, sizeof(digits), "0x%llx",
                                static_cast<unsigned long long>(*value));
    put_text(spec, std::string(digits, static_cast<std::size_t>(n)));
    return true;
  }

  std::string_view format_;
  std::span<const std::byte> args_;
  std::uint32_t long_bytes_;
  ByteOrder order_;
  std::size_t at_ = 0;
  int longs_ = 0;
  std::string out_;
};

}  // namespace

PrintkFormats parse_printk_formats(std::string_view text) {
  PrintkFormats formats;
  while (!text.empty() && formats.size() < kMaxFormats) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.starts_with(' ')) line.remove_prefix(1);
    if (line.starts_with("0x")) line.remove_prefix(2);
    std::uint64_t address = 0;
    const auto [rest, problem] =
        std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (problem != std::errc()) continue;
    line.remove_prefix(static_cast<std::size_t>(rest - line.data()));
    const auto open = line.find('"');
    const auto close = line.rfind('"');
    if (line.find(':') == std::string_view::npos || open == close) continue;
    formats.emplace(address, unescape(line.substr(open + 1, close - open - 1)));
  }
  return formats;
}

std::optional<std::string> printk_text(std::string_view format, std::span<const std::byte> args,
                                       std::uint32_t long_bytes, ByteOrder order) {
  return Printer(format, args, long_bytes == 4 ? 4 : 8, order).run();
}

}  // namespace wbscope
