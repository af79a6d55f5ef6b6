# Completion of tutti for bash.
_tutti() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" completion --at "$COMP_CWORD" "${COMP_WORDS[@]}" 2>/dev/null))
  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$2"))
}
complete -o filenames -F _tutti tutti
