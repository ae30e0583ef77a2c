# SPDX-License-Identifier: Apache-2.0
# Completion of wbscope in bash 4.4 or newer: made by `wbscope completion bash`.

_wbscope() {
    local -a answer
    mapfile -t answer < <("${COMP_WORDS[0]}" __complete bash \
        "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    COMPREPLY=("${answer[@]:1}")
    case ${answer[0]} in
        words) compopt -o nosort ;;
        part) compopt -o nosort -o nospace ;;  # more may follow: a list, NAME=VALUE
        *) compopt -o default ;;
    esac
}

complete -F _wbscope wbscope
