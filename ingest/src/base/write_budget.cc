// SPDX-License-Identifier: Apache-2.0
// How long an output may get for what is read.
#include "base/write_budget.h"

#include "base/error.h"

namespace wbscope {

std::uint64_t WriteBudget::most() const noexcept {
  if (is_lifted_ || read_ > (UINT64_MAX - free_bytes_) / kMostBytes) return UINT64_MAX;
  return free_bytes_ + read_ * kMostBytes;
}

void WriteBudget::refuse() const {
  throw Error(Exit::kInput,
              {.slug = "unpack-limit",
               .object = source_,
               .text = "found more than " + std::to_string(most()) + " bytes to write of " +
                       std::to_string(read_) + " that were read, wanted at most " +
                       std::to_string(kMostBytes) + " for each, and " +
                       std::to_string(free_bytes_),
               .at = {},
               .have = "no recorder writes such a file; one that was made to fill a disk is so",
               .effect = "nothing was written",
               .fix = fix_});
}

std::string lift_limit(const std::string& source) {
  return "when you know where it is from: wbscope ingest --no-unpack-limit " + source +
         " -o RUN.db (convert has the option, too)";
}

}  // namespace wbscope
