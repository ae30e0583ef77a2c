#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a workload of a lab can use; its own text follows.
#   $DATA      where it writes: the first disk; others are /data2 and so on
#   $OUT       what is put here becomes part of the run folder, such as fio.json and ls-files
#   $LAB       the files of the matrix
#   within CGROUP CMD...    run the command in a cgroup of the matrix
#   stopwatch NAME CMD...   note how long it takes: NAME.seconds in $OUT
#   sample SECONDS FILE...  until the workload ends, write these files to $OUT every so often
within() {
  wanted=$1
  shift
  (
    echo 0 > "$CGROUPS/$wanted/cgroup.procs" || exit 125
    exec "$@"
  )
}
uptime_now() { read -r up idle < /proc/uptime; echo "$up"; }
stopwatch() {
  name=$1
  shift
  before=$(uptime_now)
  "$@"
  code=$?
  echo "$before $(uptime_now)" | awk '{ printf "%.2f\n", $2 - $1 }' > "$OUT/$name.seconds"
  return $code
}
samplers=
sample() {
  every=$1
  shift
  # No child of the workload, whose `wait` would wait for it.
  samplers="$samplers $(
    (
      # Seen also when the workload was killed, which runs no trap.
      while sleep "$every" > /dev/null 2>&1 && kill -0 $$ 2> /dev/null; do
        for path; do
          { echo "# uptime=$(uptime_now)"; cat "$path"; } >> "$OUT/$(echo "${path#/}" | tr / _).samples"
        done
      done
    ) > /dev/null 2>&1 &
    echo $!
  )"
  trap 'kill $samplers 2> /dev/null' EXIT
}
