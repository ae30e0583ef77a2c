-- SPDX-License-Identifier: Apache-2.0
-- @query    errors
-- @title    What could not be read
-- @summary  Sources that gave no run, by what was wrong.
-- @grain    kind of error; order errors_count descending
-- @keys     slug
-- @column   slug TEXT kind of error
-- @column   errors_count INTEGER sources
-- @column   source TEXT one of them
-- @column   message TEXT what was found there
WITH
  ranked AS (
    SELECT
      e.slug, e.source, e.message,
      ROW_NUMBER() OVER (PARTITION BY e.slug ORDER BY e.source, e.id) AS place
    FROM ingest_errors AS e
  )
SELECT
  k.slug,
  count(*) AS errors_count,
  max(CASE WHEN k.place = 1 THEN k.source END) AS source,
  max(CASE WHEN k.place = 1 THEN k.message END) AS message
FROM ranked AS k
GROUP BY k.slug
ORDER BY errors_count DESC, k.slug;
