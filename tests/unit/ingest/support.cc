// SPDX-License-Identifier: Apache-2.0
// What the tests share.
#include "support.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sink/database.h"

// libtraceevent 1.7 leaks a few bytes when it gives up on a format; the
// program parses each format once and ends.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libtraceevent\n"; }

namespace wbscope::testing {

namespace fs = std::filesystem;

TempDir::TempDir() {
  std::string pattern = (fs::temp_directory_path() / "wbscope-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempDir::path(std::string_view name) const { return (fs::path(path_) / name).string(); }

std::vector<std::string> TempDir::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string TempDir::write(std::string_view name, std::string_view content) const {
  std::ofstream out(path(name), std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path(name));
  return path(name);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string rows(Database& db, const std::string& sql) {
  Statement query(db, sql);
  std::string out;
  while (query.step()) {
    if (!out.empty()) out += ' ';
    for (int i = 0; i < query.columns(); ++i) {
      out += (i == 0 ? "" : "|") + std::string(query.is_null(i) ? "NULL" : query.text(i));
    }
  }
  return out;
}

Bytes& Bytes::integer(std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) {
    const unsigned shift = 8 * (order_ == ByteOrder::kLittle ? i : bytes - 1 - i);
    data_ += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
  return *this;
}

void Bytes::set_u64(std::size_t at, std::uint64_t value) {
  data_.replace(at, 8, Bytes(order_).u64(value).str());
}

std::string kernel_format(std::string_view kernel, std::string_view system,
                          std::string_view event) {
  const fs::path path = fs::path(WBSCOPE_FORMATS_DIR) / (std::string(kernel) + ".formats");
  const std::string text = read_file(path.string());
  const auto of = text.find("# system " + std::string(system) + "\n");
  const auto at = text.find("name: " + std::string(event) + "\n", of);
  if (of == std::string::npos || at == std::string::npos) {
    throw std::runtime_error("no " + std::string(event) + " in " + path.string());
  }
  const auto end = std::min(text.find("\nname: ", at), text.find("\n# system ", at));
  return text.substr(at, end == std::string::npos ? end : end + 1 - at);
}

}  // namespace wbscope::testing
