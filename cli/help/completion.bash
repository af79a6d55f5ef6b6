# Completion of tutti for bash.
_tutti() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" completion --at "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null))
  [ ${#COMPREPLY[@]} -gt 0 ] && return
  COMPREPLY=($(compgen -f -- "$2"))
  compopt -o filenames 2>/dev/null
}
COMP_WORDBREAKS=${COMP_WORDBREAKS//:}  # onednn:0 and csv:FILE are one word
complete -F _tutti tutti
