# shellcheck shell=bash
# Sourced by the other scripts: `build TARGET…` installs what is missing (the array `deps`: further options of deps.sh),
# configures preset release (`options`: further options of cmake) and builds; `tutti_reference` stands in for plugins that
# are off.
# Output goes to build/release/script.log; a terminal also sees ninja's one line of progress.
build() {
  scripts/deps.sh ${deps[@]+"${deps[@]}"}
  local log=build/release/script.log
  mkdir -p build/release
  echo "build: cmake --preset release"
  if ! cmake --preset release ${options[@]+"${options[@]}"} >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "build: configuring failed; the whole output is in $log" >&2
    return 1
  fi
  grep -E 'plugin: ' "$log" | sed 's/^-- /build: /' || true
  local name
  for name in $(sed -n 's/^-- \([a-z]*\) plugin: off.*/\1/p' "$log"); do set -- "${@/#%tutti_$name/tutti_reference}"; done
  echo "build: cmake --build --preset release${1:+ --target $*}"
  if [ -t 1 ]; then
    cmake --build --preset release ${1:+--target "$@"} || return 1
  elif ! cmake --build --preset release ${1:+--target "$@"} >>"$log" 2>&1; then
    grep -E -A 12 'FAILED|error:' "$log" | tail -n 60 >&2
    echo "build: building failed; the whole output is in $log" >&2
    return 1
  fi
}
