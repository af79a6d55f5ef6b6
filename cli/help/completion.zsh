#compdef tutti
# Completion of tutti for zsh.
_tutti() {
  local -a found
  found=(${(f)"$("${words[1]}" completion --at $((CURRENT - 1)) "${words[@]}" 2>/dev/null)"})
  if ((${#found})); then compadd -- "${found[@]}"; else _files; fi
}
if [ "$funcstack[1]" = "_tutti" ]; then _tutti "$@"; else compdef _tutti tutti; fi
