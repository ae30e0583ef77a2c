# SPDX-License-Identifier: Apache-2.0
# Read by every scenario: `. /common.sh`.
tracing=/sys/kernel/tracing
sched='-e sched:sched_switch -e sched:sched_process_fork -e sched:sched_process_exec'

# All symbols of the kernel would be most of a small file.
small_kallsyms() {
  grep -E ' [Tt] (vfs_[a-z]+|ksys_[a-z]+|schedule[a-z_]*|do_exit)$' /proc/kallsyms > /run/kallsyms
  mount --bind /run/kallsyms /proc/kallsyms
}

short_load() {
  for i in 1 2 3; do ls / > /dev/null; done
  sleep 0.1
}

marks() {
  echo "a mark from $$" > $tracing/trace_marker
  printf 'no newline, 100%%' > $tracing/trace_marker
  # id 0x04030201 in little-endian order, then bytes that are no multiple of 4
  printf '\001\002\003\004raw bytes\000\377' > $tracing/trace_marker_raw
}

# Events that nobody reads: the recorders are stopped while the ring buffer wraps. $1: how many
# system calls, for pages of 4 KiB.
overrun() {
  page=$(sed -n 's/.*char data;.*size:\([0-9]*\);.*/\1/p' $tracing/events/header_page)
  recorders=$(pidof trace-cmd)
  for round in 1 2 3; do
    kill -STOP $recorders
    dd if=/dev/zero of=/dev/null bs=1 count=$(($1 * (page + 16) / 4096)) 2> /dev/null
    kill -CONT $recorders
    sleep 0.3
  done
}

# record NAME OPTIONS... [-- COMMAND]: /out/NAME/trace.dat; the command is a function of this file
record() {
  name=$1
  shift
  options= command=short_load
  while [ $# -gt 0 ]; do
    [ "$1" = -- ] && { shift; command=$*; break; }
    options="$options $1"
    shift
  done
  mkdir -p "/out/$name"
  trace-cmd record -q -o "/out/$name/trace.dat" $options sh -c ". /common.sh; $command" ||
    echo "$name: rc=$?"
  rm -f "/out/$name"/trace.dat.cpu*
}
