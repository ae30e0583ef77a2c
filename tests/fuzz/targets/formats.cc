// SPDX-License-Identifier: Apache-2.0
// Event formats, and the rows made of records by them.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "format/event_catalog.h"
#include "sink/database.h"
#include "sink/event_writer.h"
#include "targets.h"

namespace wbscope::fuzz {
namespace {

constexpr std::string_view kNextFormat = "\n\f\n";  // between the texts of an input
constexpr std::uint32_t kMostBytes = 1u << 16;

// What the rest of the program takes for granted of a catalog.
void check(const EventCatalog& catalog) {
  std::set<std::string> tables;
  for (const auto& event : catalog.events) {
    require(tables.insert(event.table).second);
    require(event.min_bytes >= catalog.common.end);
    require(!event.fields.empty() || event.status != FormatStatus::kRaw);
    std::set<std::string> columns{"seq", "ts", "cpu", "tid", "buffer"};
    for (const auto& field : event.fields) {
      require(columns.insert(field.column).second);
      require(field.offset <= kMostBytes && field.bytes <= kMostBytes);
      require(field.offset + field.bytes <= event.min_bytes);
      if (field.kind == FieldKind::kInteger) {
        require(field.bytes == 1 || field.bytes == 2 || field.bytes == 4 || field.bytes == 8);
      }
    }
  }
}

TraceInfo info_of(Bytes& input) {
  const std::uint8_t choices = take_byte(input);
  TraceInfo info;
  info.order = (choices & 1) != 0 ? ByteOrder::kBig : ByteOrder::kLittle;
  info.long_bytes = (choices & 2) != 0 ? 4 : 8;
  info.page_bytes = 4096;
  return info;
}

// Takes the text up to the next separator.
std::string_view take_text(std::string_view& rest) {
  const auto end = rest.find(kNextFormat);
  const auto text = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + kNextFormat.size());
  return text;
}

// Rows of records, in a database that forgets them again.
void write_rows(const EventCatalog& catalog, Bytes input, ByteOrder order) {
  Database db(":memory:", "fuzz", Database::Mode::kCreate);
  EventWriter writer(db, catalog, std::vector<bool>(catalog.events.size(), true), order);
  std::int64_t ts = 0;
  std::uint64_t written = 0;
  while (!input.empty() && !catalog.events.empty()) {
    const auto event = static_cast<std::uint32_t>(take_byte(input) % catalog.events.size());
    const std::size_t wanted = take_byte(input) * std::size_t{4};
    const std::size_t bytes = std::min(wanted, input.size());
    // A copy of its own, so that reads behind it are seen.
    std::vector<std::byte> record(input.begin(),
                                  input.begin() + static_cast<std::ptrdiff_t>(bytes));
    input = input.subspan(bytes);
    if (record.size() < catalog.events[event].min_bytes) continue;
    writer.write(event, ts++, 0, 1, 0, record);
    ++written;
  }
  writer.finish();
  std::uint64_t loaded = 0;
  for (const std::uint64_t n : writer.loaded()) loaded += n;
  require(loaded == written);
}

// One field of each kind.
const EventCatalog& every_kind() {
  static const EventCatalog catalog = [] {
    TraceInfo info;
    info.page_bytes = 4096;
    const std::string common =
        "format:\n"
        "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
        "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
        "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
        "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    info.formats.push_back(
        {"fuzz", "name: kinds\nID: 1\n" + common +
                     "\tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n"
                     "\tfield:s16 b;\toffset:10;\tsize:2;\tsigned:1;\n"
                     "\tfield:s64 c;\toffset:16;\tsize:8;\tsigned:1;\n"
                     "\tfield:char comm[16];\toffset:24;\tsize:16;\tsigned:0;\n"
                     "\tfield:u32 list[3];\toffset:40;\tsize:12;\tsigned:0;\n"
                     "\tfield:__data_loc char[] name;\toffset:52;\tsize:4;\tsigned:0;\n"
                     "\tfield:__rel_loc char[] rel;\toffset:56;\tsize:4;\tsigned:0;\n"
                     "\tfield:__data_loc u64[] data;\toffset:60;\tsize:4;\tsigned:0;\n"
                     "\tfield:__rel_loc s16[] more;\toffset:64;\tsize:4;\tsigned:1;\n"
                     "\tfield:struct blob raw;\toffset:68;\tsize:5;\tsigned:0;\n\n"
                     "print fmt: \"%d\", REC->a\n"});
    info.formats.push_back({"fuzz", "name: rest\nID: 2\n" + common +
                                        "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
                                        "\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;\n\n"
                                        "print fmt: \"%s\", REC->buf\n"});
    info.formats.push_back({"fuzz", "name: raw\nID: 3\n" + common + "\tfield:u8 x\n"});
    return build_event_catalog(info);
  }();
  return catalog;
}

}  // namespace

// Input: a byte of choices, then formats with separators between them; the
// first is the text of header_page. build_event_catalog() shows them to a
// child process first, as the program does: libtraceevent has known crashes.
void format_text(Bytes input) {
  TraceInfo info = info_of(input);
  std::string_view rest = as_text(input);
  info.header_page = take_text(rest);
  while (!rest.empty()) info.formats.push_back({"fuzz", std::string(take_text(rest))});
  const EventCatalog catalog = build_event_catalog(info);
  check(catalog);
  if (catalog.events.empty() || catalog.events.size() > 8) return;
  // Tables of these names and columns can be made and filled.
  const std::vector<std::byte> record(std::size_t{1020}, std::byte{0x5a});
  std::vector<std::byte> records;
  for (std::uint8_t i = 0; i < catalog.events.size(); ++i) {
    records.push_back(std::byte{i});
    records.push_back(std::byte{0xff});
    records.insert(records.end(), record.begin(), record.end());
  }
  write_rows(catalog, records, info.order);
}

// Input: a byte of choices, then records of an event with a field of each kind.
void rows(Bytes input) {
  const bool big = (take_byte(input) & 1) != 0;
  write_rows(every_kind(), input, big ? ByteOrder::kBig : ByteOrder::kLittle);
}

}  // namespace wbscope::fuzz
