// SPDX-License-Identifier: Apache-2.0
// What a run database and its maker say of a damaged trace, of any format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "base/reporter.h"
#include "sink/run_writer.h"

namespace wbscope {

// Adds a message when the file changed since it was opened.
void add_change(std::vector<Message>& damage, const InputFile& file);

void write_damage(RunWriter& run, const std::vector<Message>& damage);

// events: that could be read. where: what else tells of the damage.
void warn_of_damage(const Reporter& reporter, const InputFile& file,
                    const std::vector<Message>& damage, std::uint64_t events,
                    const std::string& where = "; meta.damaged is 1");

}  // namespace wbscope
