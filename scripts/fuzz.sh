#!/usr/bin/env bash
# Builds the fuzz targets (preset fuzz: clang 14, libFuzzer, AddressSanitizer, UBSan) and runs them.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/fuzz.sh [--help] [--runs N] [--seconds N] [--parsers] [NAME…]

Runs the fuzz targets of tests/fuzz (all, or those named), one after the other, from the files of tests/fuzz/corpus and
what earlier runs found (build/fuzz/corpus), and prints a table. Needs clang 14 (scripts/deps.sh --fuzz). A crash, a hang
of 10 s or an allocation above 512 MiB is a failure; its input lies in build/fuzz/crashes/NAME. Exits 1 on any.

  --runs N      executions of each target (default 100000)
  --seconds N   at most so long for each (default: no end but --runs)
  --parsers     only the targets that need no graphs: description, hf_config and replay take minutes to build
TEXT
}

runs=100000 seconds=0 parsers=no names=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --runs | --seconds)
      [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "fuzz: $1 needs a whole number (see scripts/fuzz.sh --help)" >&2; exit 2; }
      declare "${1#--}=$2"; shift ;;
    --parsers) parsers=yes ;;
    -*) echo "fuzz: unknown option $1 (see scripts/fuzz.sh --help)" >&2; exit 2 ;;
    *)
      [ -f "tests/fuzz/$1.cpp" ] || {
        echo "fuzz: there is no target $1, but $(cd tests/fuzz && echo *.cpp | sed 's/\.cpp//g')" >&2; exit 2; }
      names+=("$1") ;;
  esac
  shift
done
command -v clang++-14 >/dev/null || { echo "fuzz: clang++-14 is not installed (scripts/deps.sh --fuzz)" >&2; exit 1; }

engine=ON
[ $parsers = no ] || engine=OFF
log=build/fuzz/build.log
mkdir -p build/fuzz
targets=(tutti_fuzz)
[ ${#names[@]} = 0 ] || targets=("${names[@]/#/fuzz_}")
{ cmake --preset fuzz "-DTUTTI_FUZZ_ENGINE=$engine" && cmake --build --preset fuzz --parallel 2 --target "${targets[@]}"; } \
  >"$log" 2>&1 || { tail -n 30 "$log" >&2; echo "fuzz: the build failed, see $log" >&2; exit 1; }
if [ ${#names[@]} = 0 ]; then
  for source in tests/fuzz/*.cpp; do
    name=$(basename "$source" .cpp)
    if grep -q "^build fuzz/fuzz_$name:" build/fuzz/build.ninja; then names+=("$name"); fi
  done
fi
[ ${#names[@]} -gt 0 ] || { echo "fuzz: no target was built" >&2; exit 1; }

failed=()
started=$(mktemp)
trap 'rm -f "$started"' EXIT
printf '%-12s %10s %8s  %s\n' target executions exec/s result
for name in "${names[@]}"; do
  found=build/fuzz/corpus/$name crashes=build/fuzz/crashes/$name log=build/fuzz/$name.log
  mkdir -p "$found" "$crashes"
  rc=0
  limits=(-rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=10)
  "build/fuzz/fuzz/fuzz_$name" "${limits[@]}" -runs="$runs" -max_total_time="$seconds" \
    -max_len=65536 -seed=1 -print_final_stats=1 -artifact_prefix="$crashes/" "$found" "tests/fuzz/corpus/$name" \
    >"$log" 2>&1 || rc=$?
  stat() { sed -n "s/^stat::$1: *//p" "$log"; }
  result=ok
  if [ $rc != 0 ]; then
    result="FAILED: $(grep -m 1 -o 'ERROR: .*\|runtime error: .*\|what(): .*' "$log" | cut -c 1-80), see $log and $crashes"
  fi
  # A machine that stands still for a while is no fault: a slow input must be slow again, by itself.
  slow=$(find "$crashes" -name 'timeout-*' -newer "$started" | head -n 1)
  if [ $rc != 0 ] && [ -n "$slow" ] && "build/fuzz/fuzz/fuzz_$name" "${limits[@]}" "$slow" >"$log.again" 2>&1; then
    rc=0 result="ok (one input took over 10 s, not again: $slow)"
  fi
  [ $rc = 0 ] || failed+=("$name")
  printf '%-12s %10s %8s  %s\n' "$name" "$(stat number_of_executed_units)" "$(stat average_exec_per_sec)" "$result"
done
for name in "${failed[@]}"; do
  printf '\nfuzz: from build/fuzz/%s.log:\n' "$name"
  { grep -m 1 -A 12 'ERROR: \|runtime error: \|what(): ' "build/fuzz/$name.log" || true; grep '^Base64: ' "build/fuzz/$name.log" || true; } | cut -c 1-300
done >&2
[ ${#failed[@]} = 0 ]
