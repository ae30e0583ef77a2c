# SPDX-License-Identifier: Apache-2.0
# Every kind of event and of field. FILES: module/wbscope_samples.ko, built for this kernel.
. /common.sh
small_kallsyms
insmod /files/wbscope_samples.ko
emit='echo 9 > /sys/module/wbscope_samples/parameters/emit'
for version in 6 7; do
  record v$version-samples --file-version $version -e wbscope_samples -- "$emit; marks; sleep 0.1"
done

cat > $tracing/kprobe_events << 'K'
p:kprobes/open do_sys_openat2 dfd=$arg1:s32 name=+0($arg2):ustring flags=+0($arg3):x64 bytes=+0($arg3):x8[4] words=+0($arg3):u16[3] comm=$comm low=$arg1:b4@2/32
r:kprobes/opened do_sys_openat2 fd=$retval:s32
K
cat $tracing/error_log
echo 'e:esample/open syscalls/sys_enter_openat file=+0($filename):ustring flags=$flags:x32' >> $tracing/dynamic_events
entry=$(od -An -t d8 -j 24 -N 8 /busybox | tr -d ' ')
echo "p:uprobes/entry /busybox:$entry ip=%ip:x64 argc=+0(%sp):u64 name=+0(+8(%sp)):ustring" > $tracing/uprobe_events || cat $tracing/error_log
echo 's:wake_to_run u64 lat; pid_t pid; char comm[16]; char[] text' >> $tracing/dynamic_events
cat $tracing/dynamic_events
echo 'hist:keys=pid:ts0=common_timestamp.usecs' > $tracing/events/sched/sched_waking/trigger
echo 'hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).trace(wake_to_run,$lat,next_pid,next_comm,next_comm)' \
  > $tracing/events/sched/sched_switch/trigger || cat $tracing/error_log
record v7-probes --file-version 7 -e kprobes -e uprobes -e esample -e synthetic -- 'short_load; /busybox true'
echo '!hist:keys=next_pid:lat=common_timestamp.usecs-$ts0:onmatch(sched.sched_waking).trace(wake_to_run,$lat,next_pid,next_comm,next_comm)' \
  > $tracing/events/sched/sched_switch/trigger
echo '!hist:keys=pid:ts0=common_timestamp.usecs' > $tracing/events/sched/sched_waking/trigger

record v7-stacks --file-version 7 -T -O userstacktrace -O sym-userobj -e sched:sched_process_exec -e sched:sched_waking
record v7-long-mark --file-version 7 -e sched:sched_process_exec -- \
  "head -c 3000 /dev/zero | tr '\\000' x > $tracing/trace_marker; head -c 903 /busybox > $tracing/trace_marker_raw"
record v7-function --file-version 7 -p function -l 'vfs_*' -- 'ls / > /dev/null'
record v6-function --file-version 6 -p function -l vfs_open -- 'ls / > /dev/null'
record v7-graph --file-version 7 -p function_graph -l 'vfs_*' -- 'ls / > /dev/null'
record v7-syscalls --file-version 7 -e syscalls:sys_enter_openat -e syscalls:sys_exit_openat \
  -e syscalls:sys_enter_read -e syscalls:sys_enter_execve -e syscalls:sys_exit_execve
record v7-lost --file-version 7 -b 4 -e raw_syscalls:sys_enter -- overrun 700
record v7-lost-counted --file-version 7 -b 4 -e raw_syscalls:sys_exit -- overrun 700
record v6-lost-counted --file-version 6 -b 4 -e raw_syscalls:sys_exit -- overrun 700
record v7-all --file-version 7 -b 200 -e all -- 'ls / > /dev/null'
record v7-trace-options --file-version 7 -O record-tgid -e sched:sched_waking -e irq_vectors -e workqueue -e timer:timer_start
dmesg | grep -i tsc
