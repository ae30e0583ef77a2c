# SPDX-License-Identifier: Apache-2.0
# A host and a guest file: agent and recorder on one machine, over vsock's loopback
# (MODULES=vsock_loopback) or, with a trace-cmd newer than 3.1.6, over TCP.
. /common.sh
small_kallsyms
pair() {
  name=$1 agent=$2 guest=$3
  shift 3
  mkdir -p "/out/$name"
  cd "/out/$name"
  trace-cmd agent $agent > agent.log 2>&1 &
  sleep 2
  timeout 60 trace-cmd record -o trace.dat "$@" -B host -e sched:sched_process_fork -e sched:sched_process_exec \
    -A $guest -e sched:sched_process_exec -e sched:sched_wakeup sh -c '. /common.sh; short_load' > record.log 2>&1
  echo "$name: rc=$?"
  kill $(pidof trace-cmd) 2> /dev/null
  sleep 0.5
  kill -9 $(pidof trace-cmd) 2> /dev/null
  ls -l
  tail -n 8 record.log agent.log
  rm -f trace*.dat.cpu*
  for i in $tracing/instances/*; do [ -d "$i" ] && rmdir "$i"; done
  echo 0 > $tracing/events/enable
}
if ! lsmod | grep -q vsock_loopback; then
  pair v7-tcp "-N 127.0.0.1 -p 8123" 127.0.0.1:8123 --file-version 7 -C mono
  exit
fi
for version in 7 6; do
  pair v$version-vsock "-p 8124" guest@1:8124 --file-version $version -C mono
  pair v$version-vsock-interval "-p 8125" guest@1:8125 --file-version $version --tsync-interval 100 -C boot
done
