#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the gate as the action's inputs say, and tell the workflow the verdict.
# environment: POLICY RUNS AGAINST BASELINE INCONCLUSIVE SELF_CHECK JUNIT SARIF
set -euo pipefail

# Paths, one on each line, without empty lines and white space around them.
paths() {
  sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' <<< "$1"
}

# What the job is told, and its end: VERDICT CODE-OF-THE-GATE CODE-OF-THIS-STEP
finish() {
  printf 'verdict=%s\nexit-code=%s\n' "$1" "$2" >> "$GITHUB_OUTPUT"
  exit "$3"
}

# install-only makes them no required inputs of the action.
if [ -z "${POLICY-}" ] || [ -z "$(paths "${RUNS-}")" ]; then
  echo "::error title=wbscope gate::the inputs policy and runs are wanted, or install-only" >&2
  finish error 2 2
fi

# shellcheck disable=SC2153  # RUNS is an input, runs a list
mapfile -t runs < <(paths "$RUNS")
mapfile -t against < <(paths "${AGAINST-}")
mapfile -t baseline < <(paths "${BASELINE-}")

# Reports of an earlier job say nothing about this one; what is none stays.
junit=${JUNIT:-$(mktemp)}
for file in "$junit" ${SARIF:+"$SARIF"}; do
  ! head -c 4096 -- "$file" 2> /dev/null | grep -q -e 'name="wbscope"' -e '"name": "wbscope"' ||
    rm -f -- "$file"
done

# The first job has none yet. What it recorded is kept to be accepted; until then the job is red,
# for a baseline that is never found must not be a gate that never fails.
for file in "${baseline[@]}"; do
  [ ! -e "$file" ] || continue
  kept=wbscope-baseline.json
  code=0
  wbscope baseline save -q --force --policy "$POLICY" -o "$kept" -- "${runs[@]}" || code=$?
  if [ "$code" != 0 ]; then
    echo "::error title=wbscope gate::$file does not exist, and these runs make no baseline" \
      "(exit code $code): the log of this step says why" >&2
    finish error "$code" "$code"
  fi
  # What unchanged code would get, before anybody accepts it.
  wbscope gate --policy "$POLICY" --self-check "$kept" || true
  accept="mkdir -p $(dirname "$file") && cp $kept $file && git add $file"
  echo "::error title=No baseline yet::$file does not exist. The runs of this job are in $kept" \
    "(upload it). To accept them: $accept" >&2
  cat >> "${GITHUB_STEP_SUMMARY:-/dev/null}" << END
## wbscope gate: no baseline yet

\`$file\` does not exist. The runs of this job are in \`$kept\`. To accept them:

    $accept
END
  finish no-baseline 3 3
done

words=(gate --policy "$POLICY" --github --force --junit "$junit")
[ ${#against[@]} = 0 ] || words+=(--against "${against[@]}")
[ ${#baseline[@]} = 0 ] || words+=(--baseline "${baseline[@]}")
[ "${INCONCLUSIVE:-warn}" = warn ] || words+=(--inconclusive "$INCONCLUSIVE")
[ "${SELF_CHECK-}" != true ] || words+=(--self-check)
[ -z "${SARIF-}" ] || words+=(--sarif "$SARIF")

code=0
wbscope "${words[@]}" -- "${runs[@]}" || code=$?
case $code in
  0) finish passed 0 0 ;;
  1) finish failed 1 1 ;;
  4)  # INCONCLUSIVE, REFUSED or another word: the file says which, as the policy counts
    verdict=$(sed -n 's/.*name="counted" value="\([A-Z]*\)".*/\1/p' "$junit" | head -n 1)
    verdict=${verdict,,}
    if [ "$verdict" = inconclusive ] && [ "${INCONCLUSIVE-}" = warn ]; then
      echo "::warning title=wbscope gate::INCONCLUSIVE: neither a pass nor a fail, and the job" \
        "goes on. The summary says how many runs would decide." >&2
      finish inconclusive 4 0
    fi
    finish "${verdict:-error}" 4 4
    ;;
  *)
    echo "::error title=wbscope gate::no verdict, exit code $code: the log of this step says why" >&2
    finish error "$code" "$code"
    ;;
esac
