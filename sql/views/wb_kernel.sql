-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_kernel
-- @summary  The traced kernel's release as a number that can be compared.
-- @grain    one row
-- @needs    raw_meta
-- @column   release TEXT as uname -r prints it
-- @column   version INTEGER major * 1000 + minor: 6.12 is 6012; NULL = unknown
CREATE VIEW wb_kernel AS
WITH
  named AS (
    SELECT
      (SELECT m.value FROM raw_meta AS m WHERE m.key = 'kernel_release')
        AS release
  )
SELECT
  n.release,
  CASE
    WHEN n.release GLOB '[0-9]*.[0-9]*'
      THEN CAST(n.release AS INTEGER) * 1000
        + CAST(substr(n.release, instr(n.release, '.') + 1) AS INTEGER)
  END AS version
FROM named AS n;
