#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records on another machine with nothing but a shell and tracefs. The result is a tar
# file on stdout; `wbscope record --unpack` makes a run folder of it. Reads its buffers
# only at the end, so these have to hold the whole run; what did not fit is counted.
# @settings@ is replaced by: PROFILE, COMMAND, DURATION, BUFFER_KIB, SYNC, PROBE, WAITS, SYSCTLS, the
# functions choose_events and workload, and what what.py makes of what.toml.
# WATCHED: the end of stdin ends the recording, for it is the end of ssh. All of the script
# is in functions: the shell has read it whole before the workload could read its stdin.
set -u
@settings@

fail() { echo "wbscope: $*" >&2; exit 5; }
clean() {
  trap - EXIT
  trap '' INT TERM HUP
  [ -z "$workload" ] || end_workload
  put_back
  [ -z "$sampler$readers$watch" ] || kill $sampler $readers $watch 2>/dev/null
  [ -d "$own" ] && echo 0 > $own/tracing_on && echo 0 > $own/events/enable
  exec 4>&-
  wait 2>/dev/null
  tries=0
  while [ -d "$own" ] && ! rmdir $own 2>/dev/null && [ $tries -lt 10 ]; do
    sleep 1
    tries=$((tries + 1))
  done
  [ -z "$own" ] || remove_probes wbscope_$$_remote
  rm -rf "$work"
}
set_sysctls() { # lines of a name and a value
  while read -r name value; do
    [ -n "$name" ] || continue
    path=/proc/sys/$(echo "$name" | sed 's/[.]/\//g')
    back=$path
    before=$(cat "$path" 2>/dev/null) || fail "there is no sysctl $name"
    find_partner "$path"
    [ -z "$other" ] || [ "$before" != 0 ] || back=$other
    [ "$back" = "$path" ] || before=$(cat "$back")
    count=$((count + 1))
    kept=$work/settings/$count # in files: a value may be any text
    mkdir -p "$kept" && put_text "$path" "$kept/path" && put_text "$back" "$kept/back" &&
      put_text "$before" "$kept/before" && put_text "$value" "$kept/ours" || fail "no room in $work"
    changed="$count $changed"
    put_text "$value" "$path" 2>/dev/null || fail "sysctl $name does not take $value"
    words "$path" > "$kept/ours"
  done << E
$SYSCTLS
E
}
put_text() { printf '%s\n' "$1" > "$2"; }
words() (set -f; set -- $(cat "$1"); printf '%s\n' "$*")
put_back() { # where nobody has set another value since
  for count in $changed; do
    kept=$work/settings/$count
    path=$(cat "$kept/path") back=$(cat "$kept/back")
    if [ "$(words "$path")" = "$(words "$kept/ours")" ]; then
      restore "$back" "$(cat "$kept/before")" 2>/dev/null
    fi
    [ "$(words "$back")" = "$(words "$kept/before")" ] ||
      echo "wbscope: $back is not as it was: $(words "$kept/before")" >&2
  done
  [ -z "$changed" ] || rm -rf "$work/settings"
  changed=
}
restore() { # as settings.py of wbscope: a ratio that is not changed leaves the bytes in force
  put_text "$2" "$1"
  find_partner "$1"
  [ -z "$other" ] || [ "$(words "$other")" = 0 ] || { put_text 1 "$1"; put_text "$2" "$1"; }
}
put() { echo "$1" >> $root/dynamic_events; }
remove_probes() { # of a group of which no instance is left
  beside=$root/instances/waits-$(echo "$1" | sed 's/_/-/g')
  if [ -d "$beside" ]; then
    echo "!$(printf "$waits_told" "$1_blocked")" > $beside/events/sched/sched_waking/trigger
    echo "!$waits_kept" > $beside/events/sched/sched_switch/trigger
    rmdir $beside
  fi 2>/dev/null
  for name in $1/${probe_function}_entry $1/${probe_function}_return synthetic/$1_blocked; do
    ! grep -q ":$name[^a-z_]" $root/dynamic_events || put "-:$name"
  done 2>/dev/null
}
waits() { # as make_waits() of wbscope: who wakes a task that was blocked
  name=wbscope_$$_remote_blocked beside=$root/instances/waits-${own##*/}
  [ -e $root/synthetic_events ] && put "s:synthetic/$name $waits_fields" && mkdir $beside &&
    echo 8 > $beside/buffer_size_kb &&
    echo "$waits_kept" > $beside/events/sched/sched_switch/trigger &&
    printf "$waits_told\n" $name > $beside/events/sched/sched_waking/trigger &&
    echo "$waits_filter" > $own/events/synthetic/$name/filter &&
    echo 1 > $own/events/synthetic/$name/enable || return 1
  save $root/events/synthetic/$name/format "$work/tracefs/events/synthetic/$name/format"
  echo "synthetic:$name" >> "$work/events"
  note waits synthetic
} 2>/dev/null
probe() { # as probes.py of wbscope, which has the reasons; their formats are in the trace
  group=wbscope_$$_remote function=$probe_function
  probe_registers
  release=$(uname -r) minor=${release#*.}
  version=$((${release%%.*} * 100 + ${minor%%[!0-9]*}))
  ways= value=
  [ $version -lt $probe_names_since ] || ways=$probe_names
  [ $version -ge $probe_until ] || ways="$ways
$probe_numbers
$registers"
  [ $version -lt $probe_returns_since ] || value=$probe_value
  [ $version -ge $probe_since ] || return 1
  for kind in $probe_kinds; do
    probe_kind $kind
    room=$probe_most
    [ $kind = kprobe ] || [ $version -lt $probe_no_most_since ] || room=
    while read -r wb pages; do
      [ -n "$pages" ] || continue
      put "$enter:$group/${function}_entry $function $(printf "$probe_entry" "$wb" "$pages")" || continue
      put "$leave$room:$group/${function}_return $function$suffix $value" ||
        put "$leave:$group/${function}_return $function$suffix $value" || break
      for name in ${function}_return ${function}_entry; do
        echo 1 > $own/events/$group/$name/enable || break 2
      done
      for name in ${function}_return ${function}_entry; do
        save $root/events/$group/$name/format "$work/tracefs/events/$group/$name/format"
        echo "$group:$name" >> "$work/events"
      done
      note probe "$kind $wb $pages"
      return 0
    done << E
$ways
E
    echo 0 > $own/events/$group/enable
    remove_probes $group
  done 2>/dev/null
  return 1
}
end_workload() { # with all that it has started, where there is setsid
  kill -TERM -$workload 2>/dev/null || kill -TERM $workload 2>/dev/null
  (
    trap - EXIT
    sleep 2
    kill -KILL -$workload || kill -KILL $workload
  ) > /dev/null 2>&1 4>&- &
  killer=$!
  wait $workload 2>/dev/null
  kill $killer 2>/dev/null
  kill -KILL -$workload 2>/dev/null
}
# What lies on which disk: the number of each, of a btrfs its bdi.
stacks() {
  for path in /sys/block/*/slaves/* /sys/fs/btrfs/*/devices/*; do
    case $path in
      *'*') continue ;;
      */slaves/*) above=$(cat ${path%/slaves/*}/dev) ;;
      *) above=$(cd -P ${path%/devices/*}/bdi && pwd) above=${above##*/} ;;
    esac
    disk=$path
    [ ! -e $path/partition ] || disk=$path/..
    [ -z "$above" ] || [ ! -e $disk/dev ] || echo "$above $(cat $disk/dev)"
  done
}
# The bdi of each mount, as bdis.py of wbscope: a partition has that of its disk.
bdis() ( # its variables are its own: root is one of the script
  while read -r id parent number root place rest; do
    told=${rest#* - }
    kind=${told%% *} source=${told#* }
    source=${source%% *} name=
    case $source in
      /dev/*) ;;
      *) [ ! -d /sys/class/bdi/$number ] || printf "%s\n" "$number $source $place $kind"; continue ;;
    esac
    if [ $kind = btrfs ]; then
      for path in /sys/fs/btrfs/*/devices/${source##*/}; do
        [ -e $path ] || continue
        path=$(cd -P ${path%/devices/*}/bdi && pwd) name=${source##*/} number=${path##*/}
      done
    elif path=$(cd -P /sys/dev/block/$number && pwd); then
      name=${path##*/}
      [ ! -e $path/partition ] || number=$(cat $path/../dev)
    fi
    [ -z "$name" ] || printf "%s\n" "$number $name $place $kind"
  done < /proc/self/mountinfo
)
save() { mkdir -p "$(dirname "$2")" && cat "$1" > "$2" 2>/dev/null || rm -f "$2"; }
now() { read_clock; echo "$ts"; }
read_clock() { read -r up idle < /proc/uptime; ts=${up%.*}${up#*.}0000000; }
note() { printf '%s %s\n' "$1" "$2" >> "$work/facts"; }
add() { # the first of these names that the kernel has
  for event; do
    path=events/${event%%:*}/${event#*:}
    if [ -d $root/$path ]; then
      echo 1 > $own/$path/enable
      save $root/$path/format "$work/tracefs/$path/format"
      echo "$event" >> "$work/events"
      return
    fi
  done
  echo "$1" >> "$work/missing"
}
add_all() { # a pattern of names
  found=
  for path in $root/events/$1; do
    [ -f $path/enable ] && [ -f $path/format ] || continue
    found=1 path=${path#$root/events/}
    add "${path%%/*}:${path#*/}"
  done
  [ -n "$found" ] || fail "no event matches $1"
}
disks() {
  for path in $1; do
    [ ! -r $path/stat ] || { echo "== ${path##*/}"; echo "dev $(cat $path/dev)"; cat $path/stat; }
  done
}
objects() { for path in $1; do [ -r $path ] && { echo "== $(echo $path | cut -d/ -f$2)"; cat $path; }; done; }
# The same of short files, and by no other process: it would be one of the tasks of the run.
read_objects() {
  for path in $1; do
    [ -r $path ] || continue
    name=${path#/*/*/}
    text="$text== ${name%%/*}$end"
    while IFS= read -r line; do text="$text$line$end"; done < $path
  done
}
by_own() { "$@" & echo $! >> $tasks; wait $!; } # a task that is none of the run's
limits() { # of the cgroups that have one, as a sample
  [ -f $run/cgroups ] || return
  text=
  while read -r inode path; do
    read -r current < "$path/memory.current" && read -r high < "$path/memory.high" &&
      read -r most < "$path/memory.max" && [ $high$most != maxmax ] || continue
    text="$text== $inode/memory.current$end$current$end"
    [ $high = max ] || text="$text== $inode/memory.high$end$high$end"
    [ $most = max ] || text="$text== $inode/memory.max$end$most$end"
  done < $run/cgroups
  [ -z "$text" ] || printf '# ts=%s\n%s' "$ts" "$text"
}
sample_file() { # NAME PATH
  echo "# ts=$ts" >> $run/$1.samples
  by_own cat $2 >> $run/$1.samples
}
sample_parts() { # NAME PATTERN
  text="# ts=$ts$end"
  read_objects "$2"
  printf '%s' "$text" >> $run/$1.samples
}
entries() { # that are still in the ring buffers
  sum=0
  for n in $(sed -n 's/^entries: //p' $own/per_cpu/cpu*/stats); do sum=$((sum + n)); done
  echo $sum
}
are_waiting() { # all of them for more, or at their end; none with something to write
  for pid; do
    case $(cat /proc/$pid/stat 2>/dev/null) in *') S '* | *') Z '* | '') ;; *) return 1 ;; esac
  done
}

main() {
workload= sampler= readers= watch= own= work= changed= count=0
end='
'
exec 3<&0
root=/sys/kernel/tracing
[ -d $root/instances ] || mount -t tracefs nodev $root 2>/dev/null || root=/sys/kernel/debug/tracing
[ -w $root/instances ] || fail "tracefs is not mounted or not writable: run it as root"
for path in $root/instances/wbscope-*-remote; do # of a script that was killed
  pid=${path##*/wbscope-} pid=${pid%-remote}
  [ -d "$path" ] && ! kill -0 $pid 2>/dev/null && rmdir "$path" 2>/dev/null
done
for group in $(sed -n 's/^[a-z][0-9]*:\(synthetic\/\)*\(wbscope_[0-9]*_remote\)[/_].*/\2/p' $root/dynamic_events 2>/dev/null); do
  pid=${group#wbscope_}
  kill -0 ${pid%_remote} 2>/dev/null || remove_probes $group
done
work=$(mktemp -d) || fail "no temporary folder"
run=$work/run
trap clean EXIT
trap 'exit 130' INT TERM HUP
mkdir -p $run "$work/tracefs" || exit 5
tasks=$run/recorder_tasks
own=$root/instances/wbscope-$$-remote
mkdir $own || fail "no trace instance can be made"
echo 0 > $own/tracing_on
set_sysctls
# The last close of free_buffer ends tracing: nobody else has it open.
echo 1 > $own/options/disable_on_free 2>/dev/null
exec 4> $own/free_buffer

case $(cat $root/trace_clock) in *boot*) clock=boot ;; *) clock=mono ;; esac
echo $clock > $own/trace_clock || fail "the kernel has no clock $clock"
cpus=$(ls -d $own/per_cpu/cpu* | wc -l)
if [ $BUFFER_KIB = 0 ]; then # a sixth of what is free, at most 256 MiB a CPU
  free=$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)
  BUFFER_KIB=$((${free:-65536} / 6 / cpus))
  [ $BUFFER_KIB -gt 262144 ] && BUFFER_KIB=262144
fi
echo $BUFFER_KIB > $own/buffer_size_kb || fail "no memory for $BUFFER_KIB KiB a CPU"
for file in events/header_page events/header_event printk_formats; do
  save $root/$file "$work/tracefs/$file"
done
for path in $root/events/ftrace/*/format; do save $path "$work/tracefs/${path#$root/}"; done
save /proc/kallsyms "$work/kallsyms"
head -c 6 /bin/sh > "$work/elf"
uname -a > $run/uname
copy_before
stacks > $run/stacks 2>/dev/null
[ -s $run/stacks ] || rm -f $run/stacks
bdis > $run/bdis 2>/dev/null
for path in /proc/sys/vm/*; do [ -r $path ] && echo "vm.${path##*/} = $(cat $path)"; done > $run/sysctls 2>/dev/null
both before
choose_events
[ -s "$work/events" ] || fail "the kernel has none of the events"
[ -z "$PROBE" ] || probe || note probe none
[ -z "$WAITS" ] || waits || note waits none
( # none of these files fires an event when it is read; it ends with the script
  trap - EXIT INT TERM HUP
  while by_own sleep $sample_seconds && kill -0 $$ 2>/dev/null; do
    read_clock
    take_samples
  done
) > /dev/null 2>&1 4>&- < /dev/null &
sampler=$!
if [ -n "$WATCHED" ]; then
  ( trap - EXIT INT TERM HUP; while read -r line; do :; done <&3; kill -TERM $$ ) > /dev/null 2>&1 4>&- &
  watch=$!
fi
echo $$ $sampler $watch >> $tasks
exec 3<&-
echo "wbscope: recording $(wc -l < "$work/events") events on $(uname -n)" >&2
note profile $PROFILE; note command "$COMMAND"; note clock $clock; note sysctls "$SYSCTLS_TOLD"
note buffer_kib $BUFFER_KIB; note boot_id "$(words /proc/sys/kernel/random/boot_id)"
note written_unix_s $(date +%s); note started $(now)
echo 1 > $own/tracing_on
read_clock
began=$ts
if [ -n "$DURATION" ]; then
  sleep "$DURATION" 4>&- & # a signal is heard in wait, not in sleep
  workload=$!
  echo $workload >> $tasks
  wait $workload
  workload=
else
  ( trap - EXIT INT TERM HUP; workload ) >&2 < /dev/null 4>&- &
  workload=$!
  wait $workload
  code=$?
  workload=
  note exit_code $code
  read_clock
  note command_started $began; note command_ended $ts
  if [ -n "$SYNC" ]; then note sync_started $ts; sync; read_clock; note sync_ended $ts; fi
fi
echo 0 > $own/tracing_on
read_clock
note ended $ts
dropped=$(sed -n 's/^ *Dropped: / + /p' $root/instances/waits-${own##*/}/events/sched/*/hist 2>/dev/null) &&
  note waits_missed $((0 $dropped))
copy_after
both after
put_back
kill $sampler 2>/dev/null; sampler=
# Each hierarchy numbers its own; writeback's events have inodes of the memory controller's.
cgroups=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup [^ ]*,memory[, ].*/\1/p' /proc/mounts | head -n 1)
[ -n "$cgroups" ] || cgroups=$(sed -n 's/^[^ ]* \([^ ]*\) cgroup2 .*/\1/p' /proc/mounts | head -n 1)
[ -z "$cgroups" ] || ls -id $(find $cgroups -type d 2>/dev/null | head -n 2000) > $run/cgroups 2>/dev/null
limits 2>/dev/null > $run/cgroup.samples
[ -s $run/cgroup.samples ] || rm -f $run/cgroup.samples
save $root/saved_cmdlines "$work/saved_cmdlines"
for path in /proc/[0-9]*/task/*/comm; do echo "$(echo $path | cut -d/ -f5) $(cat $path 2>/dev/null)"; done > "$work/comms"
for cpu in $(ls $own/per_cpu | sed 's/cpu//'); do
  save $own/per_cpu/cpu$cpu/stats "$work/cpu$cpu.stats"
  # By read: some cat take sendfile, which leaves the last page, as it is not full.  One page a time.
  dd if=$own/per_cpu/cpu$cpu/trace_pipe_raw of="$work/cpu$cpu.pages" bs=65536 2>/dev/null 4>&- &
  readers="$readers $!"
done
# They wait for more when they have everything. A write may take long: this disk is throttled.
left=-1 tries=0
while :; do
  before=$left left=$(entries)
  if are_waiting $readers; then
    [ $left != 0 ] || break
    [ $left = $before ] && tries=$((tries + 1))
    [ $tries -lt 10 ] || { note left $left; break; }
  fi
  sleep 1
done
kill $readers 2>/dev/null; readers=
[ -z "$watch" ] || kill $watch 2>/dev/null
watch=
tar -C "$work" -cf - . 4>&-
}
main; exit
