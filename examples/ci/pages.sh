#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What to look at after the gate, whatever it said: all runs compared, and the first run of each
# side as a report and as a timeline. A page that cannot be made is told, and the job goes on.
# environment: RUNS AGAINST BASELINE PAGES
set -uo pipefail

paths() {
  sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' <<< "$1"
}

# The first run with a trace among paths, which may be folders of runs.
first_run() {
  local path
  for path in "$@"; do
    if [ -f "$path" ] || [ -e "$path/trace.dat" ]; then
      echo "$path"
    else
      find "$path" -mindepth 2 -maxdepth 2 -name trace.dat -printf '%h\n' | sort --version-sort
    fi
  done | head -n 1
}

page() {
  "$@" > /dev/null || echo "::notice title=wbscope pages::no page, exit code $?: $*"
}

mapfile -t runs < <(paths "${RUNS-}")
mapfile -t base < <(paths "${AGAINST-}")
mapfile -t baseline < <(paths "${BASELINE-}")
mkdir -p "$PAGES"
sides=("${base[@]}" "${baseline[@]}")
if [ ${#sides[@]} != 0 ] && [ -e "${sides[0]}" ]; then
  page wbscope compare -q "${runs[@]}" --against "${sides[@]}" --html "$PAGES/compare.html" --force
fi
new=$(first_run "${runs[@]}")
old=$(first_run "${base[@]}")
if [ -n "$new" ]; then
  page wbscope report -q --force ${old:+"$old"} "$new" -o "$PAGES/report.html"
  page wbscope timeline -q --force "$new" ${old:+--against "$old"} -o "$PAGES/timeline.pftrace"
fi
exit 0
