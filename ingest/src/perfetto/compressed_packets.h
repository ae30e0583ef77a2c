// SPDX-License-Identifier: Apache-2.0
// Packets of a Perfetto trace as one packet that holds them compressed.
#pragma once

#include <string>
#include <string_view>

namespace wbscope {

// Makes out the packet, tag and length included; packets are whole. Pre: not empty.
void compress_packets(std::string_view packets, std::string& out);

}  // namespace wbscope
