#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install wbscope from the checkout that this action is in, unless it is there.
# Debian 12 or Ubuntu 24.04 or newer; as root, or with sudo.
# environment: LAB=true for the guests of wbscope lab
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
if [ "${LAB-}" = true ]; then
  "${sudo[@]}" "$top/tools/install-debs" busybox-static cpio e2fsprogs kmod qemu-system-x86
fi
if command -v wbscope; then
  exit 0
fi
"${sudo[@]}" make -C "$top" build/.debs
venv="$RUNNER_TEMP/wbscope"
python3 -m venv "$venv"
# Versions and hashes of all of them; of this checkout only the program is built.
"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
  --only-binary :all: -r "$top/examples/ci/requirements.txt"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation "$top"
echo "$venv/bin" >> "$GITHUB_PATH"
