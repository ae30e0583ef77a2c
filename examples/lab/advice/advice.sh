# SPDX-License-Identifier: Apache-2.0
# followed             true in the runs in which the advice is followed
# bdi PLACE            the folder of the bdi of what is mounted there
# set_limits BYTES BACKGROUND
followed() { grep -q advice=followed /proc/cmdline; }
bdi() { echo "/sys/class/bdi/$(awk -v place="$1" '$5 == place { print $3 }' /proc/self/mountinfo)"; }
set_limits() {
  # The background threshold has to be below the limit at any moment.
  echo 4096 > /proc/sys/vm/dirty_background_bytes
  echo "$1" > /proc/sys/vm/dirty_bytes
  echo "$2" > /proc/sys/vm/dirty_background_bytes
}
