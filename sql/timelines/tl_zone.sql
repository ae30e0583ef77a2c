-- SPDX-License-Identifier: Apache-2.0
-- @timeline tl_zone
-- @title    Free pages of each zone
-- @order    124
-- @group    Zones: Free pages of each memory zone against its watermarks
--   (/proc/zoneinfo), sampled by wbscope record every ten samples. Below low
--   kswapd is woken, up to high it works; below min tasks reclaim themselves.
-- @level    One zone
-- @track    free [pages]: pages that nobody uses
-- @track    min [pages]: watermark
-- @track    low [pages]: watermark
-- @track    high [pages]: watermark
-- @summary  Free pages of each zone against its watermarks.
-- @grain    sample of one curve; order ts
CREATE VIEW tl_zone AS
SELECT
  z.ts,
  NULL AS dur,
  'Writeback/Zones/node ' || z.node || ' '
    || replace(replace(z.zone, '\', '\\'), '/', '\/') || '/' || z.name AS track,
  NULL AS name,
  z.value,
  'pages' AS unit
FROM raw_zoneinfo AS z
WHERE z.sample = 'sampled'
  AND z.zone IS NOT NULL
  AND z.name IN ('free', 'min', 'low', 'high')
  -- Zones without pages have lines, too.
  AND EXISTS (
    SELECT 1 FROM raw_zoneinfo AS p
    WHERE p.sample = 'sampled'
      AND p.node = z.node
      AND p.zone = z.zone
      AND p.name = 'managed'
      AND p.value > 0
  );
