# SPDX-License-Identifier: Apache-2.0
# What differs between architectures: byte order, size of long, size of a page, symbols.
. /common.sh
small_kallsyms
uname -a
for version in 6 7; do
  record v$version --file-version $version -C boot $sched
  record v$version-instances --file-version $version -C mono -e sched:sched_switch \
    -B first -e sched:sched_process_fork -e sched:sched_process_exec -B second -e sched:sched_wakeup
done
record v7-none --file-version 7 --compression none -C boot $sched
record v7-marks --file-version 7 -e sched:sched_process_exec -- 'marks; short_load'
record v6-marks --file-version 6 -e sched:sched_process_exec -- 'marks; short_load'
record v7-function --file-version 7 -p function -l 'vfs_open' -l 'vfs_write' -l 'vfs_read'
record v7-graph --file-version 7 -p function_graph -l 'vfs_open' -l 'vfs_write'
echo 'p:kprobes/open do_sys_openat2 dfd=$arg1:s32 name=+0($arg2):ustring flags=+0($arg3):x64 bytes=+0($arg3):x8[4] words=+0($arg3):x32[2]' \
  > $tracing/kprobe_events || dmesg | tail -2
echo 'r:kprobes/opened do_sys_openat2 fd=$retval:s32' >> $tracing/kprobe_events
record v7-kprobe --file-version 7 -e kprobes
echo 0 > $tracing/events/enable
echo > $tracing/kprobe_events
record v7-lost --file-version 7 -b 4 -e raw_syscalls:sys_enter -- overrun 700
record v6-lost --file-version 6 -b 4 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -- overrun 700
