#!/usr/bin/env bash
# prefix.sh CMAKE BUILD_FOLDER PREFIX: installs into a fresh folder and moves that to PREFIX, which the other tests of
# this folder use.
set -euo pipefail
cmake=$1 build=$2 prefix=$3
rm -rf "$prefix" "$prefix.first"
"$cmake" --install "$build" --prefix "$prefix.first" >"$prefix.log" || { tail -n 30 "$prefix.log"; exit 1; }
mv "$prefix.first" "$prefix"  # nothing may point to where it was
chmod -R go-w "$prefix"
