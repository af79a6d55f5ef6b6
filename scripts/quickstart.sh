#!/usr/bin/env bash
# From a fresh clone to a trained model: installs, builds, trains an MLP on Fashion-MNIST, says what to try next.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/quickstart.sh [--help] [--device NAME]

Installs what is missing, builds the command and the plugins of the devices that are here, trains an MLP on Fashion-MNIST for 5 epochs and says what to try next.

  --device auto        the best device that is there (default)
  --device cpu         the CPU by oneDNN (also: onednn); where oneDNN is not to be had, by OpenBLAS (also: cpu:0)
  --device opencl      also installs what the opencl plugin needs, and PoCL, which runs OpenCL on the CPU
  --device vulkan      also installs what the vulkan plugin needs, and Mesa, whose software device runs everywhere
  --device cuda        NVIDIA's GPUs; the driver and the CUDA toolkit have to be there
  --device reference   float64 on the host: slow
A number picks one of several: --device vulkan:1. For training with options of your own: build/release/bin/tutti train --help
TEXT
}

device=auto
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --device=*) device=${1#--device=} ;;
    --device)
      [ $# -ge 2 ] || { echo "quickstart: --device needs a name (see scripts/quickstart.sh --help)" >&2; exit 2; }
      device=$2; shift ;;
    *) echo "quickstart: unknown option $1 (see scripts/quickstart.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
# Plugins for the device that is asked for; for `auto` those whose hardware is here, the CPU's among them.
deps=()
case "$device" in
  auto)
    plugins=(onednn)
    if compgen -G "/dev/dri/renderD*" >/dev/null; then plugins+=(opencl vulkan); fi
    if [ -e /dev/nvidiactl ]; then plugins+=(opencl vulkan cuda); fi ;;
  cpu | onednn | onednn:*) plugins=(onednn) ;;
  cpu:*) plugins=(cpu) deps+=(--cpu) ;;
  reference | reference:*) plugins=(reference) ;;
  opencl | opencl:* | vulkan | vulkan:* | cuda | cuda:*) plugins=("${device%%:*}") deps+=("--${device%%:*}") ;;
  *) echo "quickstart: unknown device '$device'; one of: auto, cpu, opencl, vulkan, cuda, reference" >&2; exit 2 ;;
esac

# A tree that has no tests yet is configured without, so that what they alone need is not installed.
if ! grep -qs "TUTTI_TESTS:BOOL=ON" build/release/CMakeCache.txt; then
  deps+=(--run) options=(-DTUTTI_TESTS=OFF)
fi

. scripts/build.sh
build tutti_cli "${plugins[@]/#/tutti_}"

data=fashion-mnist
found=no
for folder in ${TUTTI_DATA_DIR:+"$TUTTI_DATA_DIR/fashion-mnist" "$TUTTI_DATA_DIR"} /usr/share/datasets/fashion-mnist; do
  if compgen -G "$folder/train-images*ubyte*" >/dev/null; then found=yes; fi
done
if [ $found = no ]; then
  data=synthetic:1x28x28:10
  echo "quickstart: Fashion-MNIST is not here, so this trains on synthetic data ($data)"
fi

train=(build/release/bin/tutti train mlp --layers "784,512,256,10" --activation relu --dropout 0.2 --data "$data"
       --batch 64 --optimizer adam --lr 1e-3 --epochs 5 --seed 1 --device "$device"
       --checkpoint build/quickstart.safetensors)
echo "quickstart: ${train[*]}"
"${train[@]}"
cat <<TEXT

Next:
  export PATH="$PWD/build/release/bin:\$PATH"
                                             so that this shell finds the command \`tutti\`, as every page of the docs calls it
  tutti eval build/quickstart.safetensors    the accuracy again, from the file
  tutti devices --explain                    what it could run on, and why
  tutti train cnn --data $data --epochs 3 --device $device
  scripts/test.sh                                               the tests
TEXT
