// SPDX-License-Identifier: Apache-2.0
// Decompression of sections and chunks (zstd, zlib).
#include "tracedat/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <new>

#include "base/byte_reader.h"

namespace wbscope {

struct Decompressor::State {
  ZSTD_DCtx* zstd = nullptr;
  ~State() { ZSTD_freeDCtx(zstd); }
};

std::optional<Compression> compression_by_name(std::string_view name) {
  if (name == "zstd") return Compression::kZstd;
  if (name == "zlib") return Compression::kZlib;
  if (name == "none") return Compression::kNone;
  return std::nullopt;
}

Decompressor::Decompressor(Compression compression)
    : compression_(compression), state_(std::make_unique<State>()) {
  if (compression_ != Compression::kZstd) return;
  state_->zstd = ZSTD_createDCtx();
  if (state_->zstd == nullptr) throw std::bad_alloc();
}

Decompressor::~Decompressor() = default;

std::string Decompressor::run(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t got = 0;
  if (compression_ == Compression::kZstd) {
    got = ZSTD_decompressDCtx(state_->zstd, out.data(), out.size(), in.data(), in.size());
    if (ZSTD_isError(got)) return std::string("zstd: ") + ZSTD_getErrorName(got);
  } else if (compression_ == Compression::kZlib) {
    uLongf length = out.size();
    const int rc =
        ::uncompress(as_unsigned(out.data()), &length, as_unsigned(in.data()), in.size());
    if (rc != Z_OK) return "zlib: error " + std::to_string(rc);
    got = length;
  } else {
    return "compressed data, but the header says compression none";
  }
  if (got == out.size()) return {};
  return "found " + std::to_string(got) + " bytes, wanted " + std::to_string(out.size());
}

}  // namespace wbscope
