# SPDX-License-Identifier: Apache-2.0
# What the patched kernel is put through in its guest, with 384 MiB of memory.
# /dev/vdb takes 4 MB/s, which is less than the slowest emulated CPU writes; /dev/vdc is for swap;
# /dev/vdd keeps the traces until the end.
WRITEBACK="-e writeback:balance_dirty_pages -e writeback:balance_dirty_pages_done
 -e writeback:bdi_dirty_ratelimit -e writeback:global_dirty_state
 -e writeback:wb_domain_dirty_state -e writeback:writeback_start -e writeback:writeback_written"
RECLAIM="-e vmscan"
SCHED="-e sched:sched_switch -e sched:sched_process_exit -e signal:signal_generate -f sig==9"

mkdir -p /data /keep /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
echo "+memory +io" > /sys/fs/cgroup/cgroup.subtree_control
# Without a journal nobody waits for a commit instead of being throttled.
mkfs.ext4 -qF -O ^has_journal /dev/vdb && mount -t ext4 /dev/vdb /data
mkfs.ext4 -qF /dev/vdd && mount -t ext4 /dev/vdd /keep
# Huge pages go whole to a swap device that has clusters, which wants no spindle.
echo 0 > /sys/block/vdc/queue/rotational
mkswap /dev/vdc > /dev/null && swapon /dev/vdc
cp /files/* /tmp/ && chmod +x /tmp/hog

# One recording: its trace and the /proc files around the workload, read while it is traced.
record() {
  name=$1; shift
  mkdir -p /keep/$name /out/$name
  sync
  sleep 2
  cp /proc/zoneinfo /proc/meminfo /out/$name/
  uname -a > /out/$name/uname
  cat > /tmp/traced << S
cat /proc/sys/vm/stat_refresh; cat /proc/vmstat > /out/$name/vmstat.before
. /tmp/work
cat /proc/sys/vm/stat_refresh; cat /proc/vmstat > /out/$name/vmstat.after
S
  trace-cmd record -C mono -b 30000 "$@" -o /keep/$name/trace.dat sh /tmp/traced
  echo "$name rc=$?"
  cat /proc/zoneinfo > /out/$name/zoneinfo.after
}

# Writers in the root cgroup and in one of 48 MiB; one of real-time priority; some are killed
# where they sleep: those of many above the limit (task_ratelimit 0), those alone below it.
# /proc/vmstat is read meanwhile.
echo 6 > /proc/sys/vm/dirty_ratio; echo 3 > /proc/sys/vm/dirty_background_ratio
mkdir /sys/fs/cgroup/small; echo 48M > /sys/fs/cgroup/small/memory.max
cat > /tmp/work << 'S'
write() { dd if=/dev/zero of=/data/$1 bs=1M count=$2 2> /dev/null; }
killed() {
  dd if=/dev/zero of=/data/killed-$1 bs=1M count=97 2> /dev/null & dd=$!
  sleep $1
  while read -r stat < /proc/$dd/stat; do
    case $stat in *") D "*) kill -9 $dd; break ;; *") Z "*) break ;; esac
    sleep 0.01
  done
  wait $dd
}
for i in 1 2; do write root-$i 43 & done
(echo 0 > /sys/fs/cgroup/small/cgroup.procs; write small 29) &
chrt -f 1 dd if=/dev/zero of=/data/realtime bs=1M count=11 2> /dev/null &
for i in 0.3 0.7 1.1 3; do killed $i & done
for i in 1 2 3 4 5 6 7; do cat /proc/vmstat > /dev/null; sleep 0.5; done
wait
for i in 2 4 5; do killed $i; done
S
record throttle $WRITEBACK $SCHED
ls -li /data > /out/throttle/ls-files
ls -id /sys/fs/cgroup /sys/fs/cgroup/small > /out/throttle/cgroups
rm -f /data/[a-z]*-* /data/small /data/realtime; sync

# Memory that does not suffice: a file that is written slowly, anonymous memory, tmpfs. First
# what needs memory that is free: folios of 2 MiB, given up by two who ask for that, one folio
# after another; shared memory that finds no swap; pages that a pipe has references to.
echo 60 > /proc/sys/vm/dirty_ratio; echo 50 > /proc/sys/vm/dirty_background_ratio
echo 100 > /proc/sys/vm/swappiness
# Zone DMA is kept for nobody.
echo 9999 9999 > /proc/sys/vm/lowmem_reserve_ratio
mkdir /sys/fs/cgroup/limited; echo 24M > /sys/fs/cgroup/limited/memory.max
mkdir /sys/fs/cgroup/asked /sys/fs/cgroup/noswap /shm
echo 0 > /sys/fs/cgroup/noswap/memory.swap.max
mount -t tmpfs -o size=120m shm /shm
# With less than 512 MiB of memory the kernel turns huge pages off.
for f in enabled defrag; do echo madvise > /sys/kernel/mm/transparent_hugepage/$f; done
cat > /tmp/work << 'S'
/tmp/hog 13 pageout huge
(echo 0 > /sys/fs/cgroup/asked/cgroup.procs; exec /tmp/hog 17 6 huge) &
(echo 0 > /sys/fs/cgroup/noswap/cgroup.procs; exec /tmp/hog 7 pageout shared)
/tmp/hog 1 pageout held
sleep 1; echo 8M > /sys/fs/cgroup/asked/memory.reclaim
dd if=/dev/zero of=/data/big bs=1M count=83 2> /dev/null & big=$!
dd if=/dev/zero of=/shm/file bs=1M count=61 2> /dev/null
/tmp/hog 281 12 &
(echo 0 > /sys/fs/cgroup/limited/cgroup.procs; exec /tmp/hog 53 3) &
sleep 3
/tmp/hog 13 pageout
wait
rm /shm/file
S
record reclaim $RECLAIM $WRITEBACK
cd /sys/kernel/tracing/events
for f in writeback/*/format vmscan/*/format; do
  mkdir -p /out/formats/${f%/*/format} && cat $f > /out/formats/${f%/format}.format
done
cd /out
for run in throttle reclaim; do mv /keep/$run/trace.dat /out/$run/; done
