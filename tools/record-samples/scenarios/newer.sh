# SPDX-License-Identifier: Apache-2.0
# What only newer kernels and trace-cmd have: sub-buffers of several pages, long marks, zlib.
. /common.sh
small_kallsyms
trace-cmd list -c
for kb in 8 64; do
  record v7-subbuf-$kb --file-version 7 --subbuf-size $kb -b 256 -C boot $sched -- \
    "head -c 6000 /dev/zero | tr '\\000' y > $tracing/trace_marker; short_load"
  record v6-subbuf-$kb --file-version 6 --subbuf-size $kb -b 256 -C boot $sched
done
record v7-subbuf-instance --file-version 7 -e sched:sched_switch -B first --subbuf-size 16 -e sched:sched_process_exec
echo 4 > $tracing/buffer_subbuf_size_kb
record v7-zlib --file-version 7 --compression zlib $sched
# For readers without zlib.
mkdir -p /out/v7-zlib-as-zstd
trace-cmd convert -i /out/v7-zlib/trace.dat -o /out/v7-zlib-as-zstd/trace.dat --compression zstd
# The types of the whole kernel (BTF) go into the file with func-args.
: > /run/btf
mount --bind /run/btf /sys/kernel/btf/vmlinux
record v7-function-args --file-version 7 -p function -l vfs_open -O func-args -- 'ls / > /dev/null'
record v7-graph-args --file-version 7 -p function_graph -l vfs_open -l vfs_write -O funcgraph-args \
  -- 'ls / > /dev/null'
record v7-marks --file-version 7 -e sched:sched_process_exec -- 'marks; short_load'
record v7-proc-map --file-version 7 --proc-map -F $sched
record v7-lost --file-version 7 -b 4 -e raw_syscalls:sys_enter -- overrun 700
record v7-all --file-version 7 -b 200 -e all -- 'ls / > /dev/null'
