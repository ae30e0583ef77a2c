#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install wbscope from the checkout that this action is in, unless it is there.
# Debian 12 or Ubuntu 24.04 or newer; as root, or with sudo.
set -euo pipefail
if command -v wbscope; then
  exit 0
fi
top=$(cd "$(dirname "$0")/../.." && pwd)
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
"${sudo[@]}" make -C "$top" build/.debs
python3 -m venv "$RUNNER_TEMP/wbscope"
"$RUNNER_TEMP/wbscope/bin/pip" install --quiet --disable-pip-version-check "$top"
echo "$RUNNER_TEMP/wbscope/bin" >> "$GITHUB_PATH"
