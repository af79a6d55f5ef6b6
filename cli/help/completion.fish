# Completion of tutti for fish.
complete -c tutti -a '(set -l words (commandline -opc); tutti completion --at (count $words) $words (commandline -ct) 2>/dev/null)'
