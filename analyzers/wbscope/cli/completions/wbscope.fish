# SPDX-License-Identifier: Apache-2.0
# Completion of wbscope in fish: made by `wbscope completion fish`.

function __wbscope_complete
    set -l words (commandline -opc)
    set -l answer ($words[1] __complete fish $words[2..] (commandline -ct | string unescape) 2>/dev/null)
    switch "$answer[1]"
        case words part
            printf '%s\n' $answer[2..]
        case '*'
            __fish_complete_path (commandline -ct)
    end
end

complete -c wbscope -f -a '(__wbscope_complete)'
