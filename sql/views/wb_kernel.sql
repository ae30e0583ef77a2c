-- SPDX-License-Identifier: Apache-2.0
-- @view     wb_kernel
-- @summary  The traced kernel's release as a number that can be compared.
-- @grain    one row
-- @needs    raw_meta
-- @column   release TEXT as uname -r prints it
-- @column   version INTEGER major * 1000 + minor: 6.12 is 6012; NULL = unknown
-- @column   patch INTEGER third number: 2 of 6.14.2; 0 where there is none
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
  END AS version,
  CASE
    WHEN n.release GLOB '[0-9]*.[0-9]*.[0-9]*'
      THEN CAST(
        substr(
          substr(n.release, instr(n.release, '.') + 1),
          instr(substr(n.release, instr(n.release, '.') + 1), '.') + 1
        ) AS INTEGER
      )
    ELSE 0
  END AS patch
FROM named AS n;
