#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the gate as the action's inputs say, and tell the workflow the verdict.
# environment: POLICY RUNS AGAINST BASELINE INCONCLUSIVE SELF_CHECK JUNIT SARIF
set -euo pipefail

# Paths, one on each line, without empty lines and white space around them.
paths() {
  sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' <<< "$1"
}

# install-only makes them no required inputs of the action.
if [ -z "${POLICY-}" ] || [ -z "$(paths "${RUNS-}")" ]; then
  echo "::error title=wbscope gate::the inputs policy and runs are wanted, or install-only" >&2
  printf 'verdict=error\nexit-code=2\n' >> "$GITHUB_OUTPUT"
  exit 2
fi

# shellcheck disable=SC2153  # RUNS is an input, runs a list
mapfile -t runs < <(paths "$RUNS")
mapfile -t against < <(paths "${AGAINST-}")
mapfile -t baseline < <(paths "${BASELINE-}")
words=(gate --policy "$POLICY" --github --force)
[ ${#against[@]} = 0 ] || words+=(--against "${against[@]}")
[ ${#baseline[@]} = 0 ] || words+=(--baseline "${baseline[@]}")
[ -z "${INCONCLUSIVE-}" ] || words+=(--inconclusive "$INCONCLUSIVE")
[ "${SELF_CHECK-}" != true ] || words+=(--self-check)
[ -z "${JUNIT-}" ] || words+=(--junit "$JUNIT")
[ -z "${SARIF-}" ] || words+=(--sarif "$SARIF")

code=0
wbscope "${words[@]}" -- "${runs[@]}" || code=$?
case $code in
  0) verdict=passed ;;
  1) verdict=failed ;;
  4) verdict=inconclusive ;;
  *)
    verdict=error
    echo "::error title=wbscope gate::no verdict, exit code $code: the log of this step says why" >&2
    ;;
esac
printf 'verdict=%s\nexit-code=%s\n' "$verdict" "$code" >> "$GITHUB_OUTPUT"
exit "$code"
