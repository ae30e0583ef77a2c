# SPDX-License-Identifier: Apache-2.0
# disks WHEN: the counters of all disks, and the time, to $OUT/disks.WHEN
disks() {
  { echo "uptime $(uptime_now)"; cat /proc/diskstats; } > "$OUT/disks.$1"
}
