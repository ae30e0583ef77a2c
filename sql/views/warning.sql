-- SPDX-License-Identifier: Apache-2.0
-- What must be known before a number is believed.

-- @view     wb_warning
-- @summary  What the reader of an answer must know: the rows of a query's name,
--   and those of '*' with every answer.
-- @grain    warning; order scope, slug
-- @column   scope TEXT name of a query, or *
-- @column   slug TEXT stable name of the warning
-- @column   message TEXT what it means, with the numbers
CREATE VIEW wb_warning AS
-- The files of sql/warnings add their rows.
SELECT '' AS scope, '' AS slug, '' AS message
WHERE 0;
