#!/usr/bin/env bash
# Checks the format of every C and C++ file (clang-format 14) and the spelling of all files (codespell), and runs clang-tidy over
# the sources that changed.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/lint.sh [--help] [--all | --since REF] [--most N] [--jobs N] [FOLDER…]

Checks that generated headers and lists are up to date (scripts/collect.py), the format of all C and C++ files and the
spelling of all text (codespell with the words of .codespellrc), then runs clang-tidy over the sources in FOLDER… (by default
all but tests and examples) that changed. A changed header counts as the source of the same name. Needs clang-format 14, clang-tidy 14 and codespell (scripts/deps.sh --lint).

  --since REF   changed since the merge base with REF (default: origin/main, on main itself the commit before)
  --all         clang-tidy over all sources
  --most N      of the changed sources at most N (default 16, about three minutes on two cores); says which it leaves out
  --jobs N      N at a time (default: the number of processors)
TEXT
}

all=no since="" most=16 jobs=$(nproc) folders=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --all) all=yes ;;
    --since | --most | --jobs)
      [ $# -ge 2 ] || { echo "lint: $1 needs a value (see scripts/lint.sh --help)" >&2; exit 2; }
      declare "${1#--}=$2"; shift ;;
    -*) echo "lint: unknown option $1 (see scripts/lint.sh --help)" >&2; exit 2 ;;
    *) folders+=("${1%/}") ;;
  esac
  shift
done
[ ${#folders[@]} -gt 0 ] || folders=(core graph nn data train onnx verify bench sdk kernels backends cli plugins python)

versioned() {  # NAME: the program of that name in version 14
  local program
  for program in "$1-14" "$1"; do
    if "$program" --version 2>/dev/null | grep -q 'version 14\.'; then echo "$program"; return 0; fi
  done
  echo "lint: $1 14 is not installed (scripts/deps.sh --lint)" >&2
  return 1
}
format=$(versioned clang-format)
tidy=$(versioned clang-tidy)
command -v codespell >/dev/null || { echo "lint: codespell is not installed (scripts/deps.sh --lint)" >&2; exit 1; }

failed=0
git ls-files -z '*.c' '*.cpp' '*.h' | xargs -0 "$format" --dry-run --Werror || failed=1
[ $failed = 0 ] || echo "lint: format them with: $format -i FILE…" >&2
git ls-files -z | xargs -0 codespell --config .codespellrc || {
  failed=1
  echo "lint: correct these words, or add right ones to ignore-words-list in .codespellrc" >&2
}
scripts/collect.py --check || failed=1

# Changed files, by name: since the merge base with a branch; else since the commit before; else those of the one commit.
changed() {
  local base
  if [ -n "$since" ]; then
    base=$(git merge-base "$since" HEAD) || { echo "lint: no common commit with $since" >&2; return 1; }
  else
    base=$(git merge-base origin/main HEAD 2>/dev/null || true)
    if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then
      base=$(git rev-parse --quiet --verify HEAD~1) || {
        echo "lint: the commit before is not here (a shallow clone?): taking the last commit's files" >&2
        git diff-tree --root -r --no-commit-id --name-only HEAD
        return 0
      }
    fi
  fi
  git diff --name-only --diff-filter=d "$base"
}

cmake --preset lint >/dev/null
cmake --build --preset lint >/dev/null
known=$(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\",\{0,1\}$|\1|p" build/lint/compile_commands.json | grep -v '^build/' | sort -u)
[ -n "$known" ] || { echo "lint: build/lint/compile_commands.json names no source" >&2; exit 1; }
if [ $all = yes ]; then files=$known
else
  names=$(changed)
  files=$(sed -n 's/\.h$/.cpp/p; /\.cp*$/p' <<<"$names" | sort -u | comm -12 - <(echo "$known"))
fi
inside=$(IFS='|'; echo "^(${folders[*]})/")
mapfile -t files < <(grep -E "$inside" <<<"$files" || true)
count=${#files[@]}
if [ $all = no ] && [ ${#files[@]} -gt "$most" ]; then
  echo "lint: ${#files[@]} changed sources, of which clang-tidy checks $most; left out: ${files[*]:most}"
  files=("${files[@]:0:most}")
fi
echo "lint: clang-tidy over ${#files[@]} sources"
[ ${#files[@]} = 0 ] || printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P "$jobs" "$tidy" -p build/lint --quiet --warnings-as-errors='*' \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -v 'warnings\? generated\.$' >&2) || failed=1
[ $failed = 0 ] && echo "lint: no findings in ${#files[@]} of $count sources"
exit $failed
