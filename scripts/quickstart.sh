#!/usr/bin/env bash
# From a fresh clone to a trained model: installs, builds, trains an MLP on Fashion-MNIST, says what to try next.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then
  echo "usage: scripts/quickstart.sh   (no options; for training with your own, see build/release/bin/tutti train --help)"
  [ "$1" = --help ] || [ "$1" = -h ] || exit 2
  exit 0
fi
. scripts/build.sh
build tutti_cli tutti_plugins

data=fashion-mnist
found=no
for folder in ${TUTTI_DATA_DIR:+"$TUTTI_DATA_DIR/fashion-mnist" "$TUTTI_DATA_DIR"} /usr/share/datasets/fashion-mnist; do
  if compgen -G "$folder/train-images*ubyte*" >/dev/null; then found=yes; fi
done
if [ $found = no ]; then
  data=synthetic:1x28x28:10
  echo "quickstart: Fashion-MNIST is not here, so this trains on made-up data ($data)"
fi

train=(build/release/bin/tutti train mlp --layers "784,512,256,10" --activation relu --dropout 0.2 --data "$data"
       --batch 64 --optimizer adam --lr 1e-3 --epochs 5 --seed 1 --device auto --checkpoint build/quickstart.safetensors)
echo "quickstart: ${train[*]}"
"${train[@]}"
cat <<TEXT

Next:
  build/release/bin/tutti eval build/quickstart.safetensors     the accuracy again, from the file
  build/release/bin/tutti devices --explain                     what it ran on, and why
  build/release/bin/tutti train cnn --data $data --epochs 3
  scripts/test.sh                                               the tests
TEXT
