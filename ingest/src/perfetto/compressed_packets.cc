// SPDX-License-Identifier: Apache-2.0
// Packets of a Perfetto trace as one packet that holds them compressed.
// Field number: protos/perfetto/trace/trace_packet.proto of Perfetto.
#include "perfetto/compressed_packets.h"

#include <zlib.h>

#include <new>
#include <protozero/pbf_writer.hpp>

#include "base/byte_reader.h"

namespace wbscope {

void compress_packets(std::string_view packets, std::string& out) {
  constexpr std::uint32_t kTracePacket = 1, kCompressedPackets = 50;
  constexpr int kLevel = 6;  // of 9: packets are alike, and shrink to a tenth
  uLongf bytes = compressBound(packets.size());
  std::string compressed(bytes, '\0');
  if (compress2(as_unsigned(compressed.data()), &bytes, as_unsigned(packets.data()),
                packets.size(), kLevel) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string packet;
  protozero::pbf_writer(packet).add_bytes(kCompressedPackets, compressed.data(), bytes);
  out.clear();
  protozero::pbf_writer(out).add_message(kTracePacket, packet);
}

}  // namespace wbscope
