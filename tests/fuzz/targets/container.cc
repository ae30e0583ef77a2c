// SPDX-License-Identifier: Apache-2.0
// The containers of versions 6 and 7, and their options.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/input_file.h"
#include "targets.h"
#include "tracedat/section_text.h"
#include "tracedat/trace_file.h"

namespace wbscope::fuzz {
namespace {

void append(std::vector<std::byte>& out, Bytes bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append(std::vector<std::byte>& out, std::string_view text) {
  append(out, std::as_bytes(std::span(text.data(), text.size())));
}

template <typename T>
void append_number(std::vector<std::byte>& out, T value, ByteOrder order) {
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  const T stored = load<T>(bytes, order);  // swaps when order is not the host's
  std::memcpy(bytes, &stored, sizeof(T));
  append(out, Bytes(bytes));
}

// What is said of a file must hold whatever is in it.
void read_file(const std::vector<std::byte>& bytes) {
  const InputFile file("fuzz", bytes);
  try {
    const TraceInfo info = read_trace_info(file);
    std::size_t regions = 0;
    std::uint64_t claimed = 0;
    for (const auto& buffer : info.buffers) {
      require(buffer.page_bytes >= kMinPageBytes && buffer.page_bytes <= kMaxPageBytes);
      regions += buffer.regions.size();
      for (const auto& region : buffer.regions) {
        require(region.bytes == 0 || region.offset <= bytes.size());
        require(region.bytes == 0 || region.bytes <= bytes.size() - region.offset);
        claimed += region.bytes;
      }
    }
    require(regions <= kMaxRegions + kMaxCpus);
    require(claimed <= bytes.size());  // no byte is read for two CPUs
    require(info.formats.size() <= 2 * kMaxFormats);
  } catch (const Error& error) {
    require(error.exit_code() == Exit::kInput);
    require(!error.message().slug.empty() && !error.message().text.empty());
  }
}

std::vector<std::byte> first_bytes(char version, ByteOrder order, std::uint8_t long_bytes) {
  std::vector<std::byte> file;
  append(file, std::string_view("\x17\x08\x44tracing", 10));
  append(file, std::string(1, version));
  const char rest[3] = {0, order == ByteOrder::kBig ? '\1' : '\0', static_cast<char>(long_bytes)};
  append(file, std::string_view(rest, sizeof(rest)));
  append_number<std::uint32_t>(file, 4096, order);
  return file;
}

void version_and(char version, Bytes input) {
  std::vector<std::byte> file;
  append(file, std::string_view("\x17\x08\x44tracing", 10));
  append(file, std::string(1, version));
  append(file, std::string_view("\0", 1));
  append(file, input);
  read_file(file);
}

}  // namespace

// Input: the file behind its version. Offsets in it are those of the file.
void container_v6(Bytes input) { version_and('6', input); }
void container_v7(Bytes input) { version_and('7', input); }

// Input: a byte of choices, then the options as they stand in a file.
void options(Bytes input) {
  const std::uint8_t choices = take_byte(input);
  const ByteOrder order = (choices & 1) != 0 ? ByteOrder::kBig : ByteOrder::kLittle;
  const auto long_bytes = static_cast<std::uint8_t>((choices & 2) != 0 ? 4 : 8);
  if ((choices & 4) != 0) {
    std::vector<std::byte> file = first_bytes('6', order, long_bytes);
    append(file, std::string_view("header_page\0", 12));
    append_number<std::uint64_t>(file, 0, order);
    append(file, std::string_view("header_event\0", 13));
    append_number<std::uint64_t>(file, 0, order);
    for (int i = 0; i < 4; ++i) append_number<std::uint32_t>(file, 0, order);
    append_number<std::uint64_t>(file, 0, order);  // no formats, symbols, command lines
    append_number<std::uint32_t>(file, choices >> 4, order);
    append(file, std::string_view("options  \0", 10));
    append(file, input);
    return read_file(file);
  }
  std::vector<std::byte> file = first_bytes('7', order, long_bytes);
  append(file, std::string_view("none\0\0", 6));
  append_number<std::uint64_t>(file, file.size() + 8, order);
  append_number<std::uint64_t>(file, 0, order);  // OPTIONS, no flags, no string
  append_number<std::uint64_t>(file, input.size(), order);
  append(file, input);
  read_file(file);

  // One option alone, without what the container makes of it.
  TraceInfo info;
  SectionReader body("options", 0, ByteReader(input, order));
  try {
    (void)parse_common_option(choices >> 3, body, info);
    require(!info.has_tsc || info.tsc_shift < 64);
  } catch (const Error& error) {
    require(error.exit_code() == Exit::kInput);
  }
}

}  // namespace wbscope::fuzz
