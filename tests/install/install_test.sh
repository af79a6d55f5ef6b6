#!/usr/bin/env bash
# install_test.sh CMAKE BUILD_FOLDER COMPILER PREFIX
set -euo pipefail
cmake=$1 build=$2 compiler=$3 prefix=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TUTTI_PLUGIN_PATH TUTTI_DEVICE TUTTI_DEVICE_ORDER LD_LIBRARY_PATH

for path in bin/tutti include/tutti/tutti.h include/tutti/graph/ops.h include/tutti/sdk/plugin.h share/doc/Tutti/SETTINGS.md \
  share/doc/Tutti/decisions/README.md share/tutti/plain_c/plain.c; do
  [ -e "$prefix/$path" ] || { echo "not installed: $path"; exit 1; }
done
config=$(find "$prefix" -name TuttiConfig.cmake)
plugins=$(find "$prefix" -path '*/tutti/plugins/reference.json')
if [ -z "$config" ] || [ -z "$plugins" ]; then
  echo "not installed: TuttiConfig.cmake or the plugins"
  exit 1
fi

echo "== bin/tutti devices"
"$prefix/bin/tutti" devices | tee "$work/devices"
for manifest in "$build"/lib/tutti/plugins/*.json; do  # every plugin of the build tree works in the installed one
  name=$(basename "$manifest" .json)
  grep -q "^$name:0" "$work/devices" || { echo "no device of plugin $name"; exit 1; }
done
if command -v readelf >/dev/null; then
  find "$prefix" -type f \( -name '*.so*' -o -path '*/bin/tutti' -o -name tutti-probe \) -exec readelf -d {} + 2>/dev/null >"$work/dynamic"
  if grep -E 'R(UN)?PATH' "$work/dynamic" | grep -F "${build%/build/*}"; then
    echo "an installed file points into the build or source folder"
    exit 1
  fi
fi

if TUTTI_LOG=info "$prefix/bin/tutti" devices 2>&1 >/dev/null | grep "tutti-probe is not installed"; then exit 1; fi

echo "== a consumer"
"$cmake" -S "$here/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" || { tail -n 30 "$work/log"; exit 1; }
"$cmake" --build "$work/build" >"$work/log" || { tail -n 30 "$work/log"; exit 1; }
"$work/build/consumer"

echo "== a plugin"
mkdir "$work/own"
cp "$work/build/libempty.so" "$work/own"
cat >"$work/own/empty.json" <<'JSON'
{"tutti_manifest": 1, "name": "empty", "version": "1.0", "abi": [1, 1], "kind": "other", "priority": 1, "library": "libempty.so"}
JSON
chmod go-w "$work/own" "$work/own"/*
TUTTI_PLUGIN_PATH=$work/own "$prefix/bin/tutti" devices --json >"$work/devices"
grep -q '"empty"' "$work/devices" || { cat "$work/devices"; exit 1; }
echo "install: ok"
