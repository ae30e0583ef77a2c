#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run a command in a root of its own; fresh.py starts this in a private mount namespace, which
# takes every mount with it when its last process has ended.
# usage: fresh_root.sh ROOT PLACES COMMAND...
#   PLACES   folders of the machine that are to be seen in it: "rw FROM TO" or "ro FROM TO", one a line
# exit code 75: a mount was refused, the last line on stderr says which
set -eu
root=$1 places=$2
shift 2

refused() {
  echo "no root of its own: $*" >&2
  exit 75
}
# on PLACE WORDS...: mount it; the folder is made.
on() {
  place=$1
  shift
  mkdir -p "$place" || refused "mkdir $place"
  mount "$@" "$place" || refused "mount $* $place"
}

# unshare -m in the root wants it to be a mount.
on "$root" --bind "$root"
on "$root/proc" -t proc proc
on "$root/sys" --rbind /sys
on "$root/dev" --rbind /dev
on "$root/dev/shm" -t tmpfs -o mode=1777 shm
on "$root/dev/pts" -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts
on "$root/run" -t tmpfs -o mode=0755 run
while read -r mode from to; do
  [ -n "$mode" ] || continue
  on "$root$to" --bind "$from"
  [ "$mode" = rw ] || mount -o "remount,bind,$mode" "$root$to" || refused "remount $to"
done << PLACES
$places
PLACES
exec chroot "$root" "$@"
