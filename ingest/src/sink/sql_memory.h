// SPDX-License-Identifier: Apache-2.0
// The memory that SQLite takes, counted without a lock: connections of several
// threads would meet at the one that SQLite counts with.
#pragma once

#include <cstdint>

namespace wbscope {

// Before the first connection of the process; later calls do nothing.
void count_sql_memory() noexcept;

// What all connections together may have; 0: no limit. A statement that would
// take more ends with SQLITE_NOMEM.
void limit_sql_memory(std::int64_t bytes) noexcept;

}  // namespace wbscope
