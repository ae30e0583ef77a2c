// SPDX-License-Identifier: Apache-2.0
// A Perfetto trace file that several threads append packets to.
#include "perfetto/packet_output.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <protozero/varint.hpp>
#include <vector>

#include "base/error.h"
#include "perfetto/protos.h"

namespace wbscope {
namespace {

constexpr const char* kFix = "check the free space of its directory";

}  // namespace

PacketOutput::PacketOutput(const std::string& path, std::string name, const WriteBudget* budget)
    : name_(std::move(name)),
      budget_(budget),
      fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (fd_ < 0) {
    throw_system_error("cannot-write", name_, "open the output", errno,
                       "name an output in a directory that you can write");
  }
}

PacketOutput::~PacketOutput() {
  if (fd_ >= 0) ::close(fd_);
}

void PacketOutput::append(std::initializer_list<std::string_view> parts) {
  std::vector<iovec> pieces;
  std::size_t left = 0;
  for (const auto part : parts) {
    if (part.empty()) continue;
    pieces.push_back({.iov_base = const_cast<char*>(part.data()), .iov_len = part.size()});
    left += part.size();
  }
  const std::lock_guard lock(mutex_);
  if (budget_ != nullptr) budget_->check(bytes_ + left);
  for (auto piece = pieces.begin(); left > 0;) {
    const ssize_t written = ::writev(fd_, &*piece, static_cast<int>(pieces.end() - piece));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_system_error("cannot-write", name_, "write the output", errno, kFix);
    auto done = static_cast<std::size_t>(written);
    bytes_ += done;
    left -= done;
    while (piece != pieces.end() && done >= piece->iov_len) {
      done -= piece->iov_len;
      ++piece;
    }
    if (done == 0) continue;
    piece->iov_base = static_cast<char*>(piece->iov_base) + done;
    piece->iov_len -= done;
  }
}

void PacketOutput::append_packet(std::string_view packet) {
  std::array<char, protozero::max_varint_length + 1> head{};
  head[0] = static_cast<char>(protos::kPacketTag);
  const int bytes = protozero::add_varint_to_buffer(head.data() + 1, packet.size());
  append({std::string_view(head.data(), static_cast<std::size_t>(bytes) + 1), packet});
}

void PacketOutput::cut(std::uint64_t bytes) {
  const auto end = static_cast<off_t>(bytes);
  if (::ftruncate(fd_, end) != 0 || ::lseek(fd_, end, SEEK_SET) != end) {
    throw_system_error("cannot-write", name_, "cut the output", errno, kFix);
  }
  bytes_ = bytes;
}

void PacketOutput::finish() {
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0) throw_system_error("cannot-write", name_, "write the output", errno, kFix);
}

}  // namespace wbscope
