# SPDX-License-Identifier: Apache-2.0
# The same short load, recorded in every form of file: versions, compressions, instances, clocks.
. /common.sh
small_kallsyms

record v6 --file-version 6 $sched
for codec in none zstd; do
  record v7-$codec --file-version 7 --compression $codec $sched
done
for version in 6 7; do
  record v$version-instances --file-version $version -C boot -e sched:sched_switch \
    -B first -C mono -e sched:sched_process_fork -e sched:sched_process_exec \
    -B second -C global -e sched:sched_process_exit -e sched:sched_wakeup
  record v$version-instances-only --file-version $version -B lone -C local -e sched:sched_process_exec
done
for clock in $(tr -d '[]' < $tracing/trace_clock); do
  record v7-clock-$clock --file-version 7 -C $clock $sched
done
record v6-clock-x86-tsc --file-version 6 -C x86-tsc $sched
record v7-ts-offset --file-version 7 -C boot --ts-offset 1000003 $sched
record v7-date --file-version 7 -C boot --date $sched
record v6-date --file-version 6 -C boot --date $sched
record v7-max-size --file-version 7 -m 16 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -- \
  'dd if=/dev/zero of=/dev/null bs=1 count=1000'
record v7-filter --file-version 7 -e sched:sched_switch -f 'prev_pid>0' -R stacktrace
record v7-empty-cpus --file-version 7 -M 1 $sched
record v7-proc-map --file-version 7 --proc-map -F $sched

mkdir -p /out/v7-extract /out/v6-convert /out/v7-split
trace-cmd start -b 8 -e sched:sched_switch
for i in 1 2 3; do short_load; done
trace-cmd stop
trace-cmd extract -o /out/v7-extract/trace.dat > /dev/null
trace-cmd reset
trace-cmd convert -i /out/v7-zstd/trace.dat -o /out/v6-convert/trace.dat --file-version 6
trace-cmd split -i /out/v7-zstd/trace.dat -o /run/split.dat -e 20 > /dev/null
mv /run/split.dat* /out/v7-split/trace.dat
