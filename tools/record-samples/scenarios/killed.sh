# SPDX-License-Identifier: Apache-2.0
# What is left of a recording that was killed, or whose disk was full.
. /common.sh
small_kallsyms

start() {
  name=$1
  shift
  mkdir -p "/out/$name"
  trace-cmd record -q -b 16 -o "/out/$name/trace.dat" "$@" sleep 100 > /dev/null 2>&1 &
  recorder=$!
  sleep 2
  for i in 1 2 3 4 5 6 7 8 9 10; do short_load; done
}

kill_all() {
  kill -9 $(pidof trace-cmd)
  killall -9 sleep
  sleep 0.5
  ls -l "/out/$name"
  echo 0 > $tracing/tracing_on
  echo 0 > $tracing/events/enable
  for i in $tracing/instances/*; do [ -d "$i" ] && rmdir "$i"; done
  echo 1 > $tracing/tracing_on
}

# In the middle: trace-cmd has written no trace.dat yet, only what each CPU's recorder read.
start v7-killed -C boot $sched
kill_all
cd /out/v7-killed
trace-cmd restore -c -o /run/part.dat > /dev/null  # formats of all events
mkdir -p /out/v7-restored
trace-cmd restore -i /run/part.dat -o /out/v7-restored/trace.dat trace.dat.cpu0 trace.dat.cpu1
start v7-killed-instance -C mono -e sched:sched_switch -B first -e sched:sched_process_exec
kill_all

# At the end, while it puts the parts together: as soon as there is a trace.dat.
start v7-killed-late --file-version 7 $sched
kill -INT $recorder
while kill -0 $recorder && [ ! -s /out/v7-killed-late/trace.dat ]; do :; done
kill_all

# A full disk: the parts in one place, the file in a place of SIZE.
mkdir -p /small
for version in 6 7; do
  for size in 8k 12k 24k 28k 32k; do
    name=v$version-full-$size
    mount -t tmpfs -o size=$size small /small
    mkdir -p /out/$name
    trace-cmd record -q --file-version $version --temp /run -o /small/trace.dat $sched \
      sh -c '. /common.sh; short_load; short_load' || echo "$name: rc=$?"
    cp /small/* /out/$name/
    umount /small
    ls -l /out/$name
    rm -f /run/trace.dat*
  done
done
