# SPDX-License-Identifier: Apache-2.0
# The clock x86-tsc with its conversion to ns. Needs a TSC that the kernel trusts: with QEMU's
# emulation CPU=max,vendor=GenuineIntel,family=6,model=60
. /common.sh
small_kallsyms
dmesg | grep -i tsc
for version in 6 7; do
  record v$version-clock-tsc2nsec --file-version $version -C tsc2nsec $sched
  record v$version-clock-boot-tsc2nsec --file-version $version -C x86-tsc --tsc2nsec $sched
done
