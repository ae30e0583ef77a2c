-- SPDX-License-Identifier: Apache-2.0

-- @module linux.writeback.units
-- What the numbers in the kernel's writeback events are worth.

-- A trace does not tell SQL the page size of its machine. 4096 is wrong on
-- arm64 kernels with pages of 16 or 64 KiB; this is the only place to change.
CREATE PERFETTO MACRO _linux_writeback_bytes_of_pages(
  -- Number of pages.
  pages Expr
)
-- Bytes.
RETURNS Expr
AS ($pages) * 4096;

-- Rates say KB/s in the kernel and are KiB/s, whatever the page size.
CREATE PERFETTO MACRO _linux_writeback_bytes_of_kib(
  -- Number of KiB.
  kib Expr
)
-- Bytes.
RETURNS Expr
AS ($kib) * 1024;

-- Times are whole jiffies, told in ms.
CREATE PERFETTO MACRO _linux_writeback_ns_of_ms(
  -- Number of ms.
  ms Expr
)
-- Nanoseconds.
RETURNS Expr
AS ($ms) * 1000000;
