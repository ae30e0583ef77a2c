# SPDX-License-Identifier: Apache-2.0
# Two machines: the agent on one, recorded by the other over TCP. Their clocks differ by seconds.
# Start both with MODULES=virtio_net APPEND=role=agent or role=recorder, and one network, such as
# QEMU_MORE="-netdev socket,id=net,listen=127.0.0.1:PORT -device virtio-net-pci,netdev=net"
# and the same with connect= for the other. Needs trace-cmd 3.4 (3.1.6 hangs).
. /common.sh
small_kallsyms
agent=192.0.2.1 recorder=192.0.2.2
printf '127.0.0.1 localhost\n%s agent\n%s recorder\n' $agent $recorder > /etc/hosts
ip link set eth0 up
if grep -q role=agent /proc/cmdline; then
  ip addr add $agent/24 dev eth0
  trace-cmd agent -N recorder -p 8123 --verbose=all &
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
    sleep 5
    ls / > /dev/null
  done
  exit
fi
ip addr add $recorder/24 dev eth0
for i in 1 2 3 4 5 6 7 8 9; do ping -c 1 $agent && break; sleep 2; done
record v7-two-machines --file-version 7 -C mono --tsync-interval 500 \
  -B host -e sched:sched_process_fork \
  -A $agent:8123 -e sched:sched_process_exec -e sched:sched_process_fork -- 'sleep 3; short_load'
ls -l /out/*
trace-cmd dump --options /out/v7-two-machines/trace-$agent.dat | tail -n 30
