// SPDX-License-Identifier: Apache-2.0
// PageSource: where it goes on when the first part is skipped.
#include "tracedat/page_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/input_file.h"
#include "support.h"

namespace wbscope {
namespace {

using testing::Bytes;
using testing::TempDir;

constexpr std::uint32_t kPage = 512;

// A page of which only the stamp is read.
std::string page_of(std::uint64_t stamp) {
  std::string page(kPage, '\0');
  std::memcpy(page.data(), &stamp, sizeof stamp);
  return page;
}

std::string number(std::uint32_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string chunk_of(const std::string& page) {
  uLongf bytes = compressBound(page.size());
  std::string packed(bytes, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &bytes,
           reinterpret_cast<const Bytef*>(page.data()), page.size());
  packed.resize(bytes);
  return number(static_cast<std::uint32_t>(bytes)) + number(kPage) + packed;
}

// Three chunks with the stamps 10, 20 and 30, then zeros, of a CPU that claims
// as many chunks as there can be.
class Chunks {
 public:
  explicit Chunks(std::uint64_t zeros) {
    std::string text = number(0xffffffff);
    for (const std::uint64_t stamp : {10u, 20u, 30u}) {
      begins.push_back(text.size());
      text += chunk_of(page_of(stamp));
    }
    end = text.size();
    path_ = folder_.write("pages", text);
    std::filesystem::resize_file(path_, end + zeros);
    info_.page_bytes = kPage;
    info_.compression = Compression::kZlib;
    info_.budget = std::make_shared<UnpackBudget>();
    buffer_.page_bytes = kPage;
    buffer_.compressed = true;
    region_.bytes = end + zeros;
    file_ = std::make_unique<InputFile>(path_);
  }

  [[nodiscard]] PageSource source() const { return {*file_, info_, buffer_, region_}; }

  std::vector<std::uint64_t> begins;
  std::uint64_t end = 0;

 private:
  TempDir folder_;
  std::string path_;
  TraceInfo info_;
  BufferInfo buffer_;
  CpuRegion region_;
  std::unique_ptr<InputFile> file_;
};

TEST(PageSource, SkipsToTheLastChunkBefore) {
  const Chunks chunks(0);
  for (const std::uint64_t from : {5u, 15u, 25u, 35u}) {
    PageSource source = chunks.source();
    source.skip_while([&](std::uint64_t stamp) { return stamp < from; });
    ASSERT_TRUE(source.next());
    EXPECT_EQ(source.piece_offset(), chunks.begins[from < 20 ? 0 : from < 30 ? 1 : 2]) << from;
  }
}

// A header of zeros every 8 bytes: two days of reading, and a TiB of offsets.
TEST(PageSource, HoleIsNotSearchedForChunks) {
  const Chunks chunks(std::uint64_t{1} << 40);
  PageSource source = chunks.source();
  const auto began = std::chrono::steady_clock::now();
  source.skip_while([](std::uint64_t stamp) { return stamp < 35; });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  ASSERT_TRUE(source.next());
  EXPECT_EQ(source.piece_offset(), chunks.begins[2]);
  EXPECT_FALSE(source.next());
  ASSERT_TRUE(source.damage());
  EXPECT_EQ(source.damage()->slug, "bad-chunk");
}

}  // namespace
}  // namespace wbscope
