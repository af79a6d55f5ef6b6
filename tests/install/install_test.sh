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

echo "== the examples, with the warnings of a strict project"
strict="-Wall -Wextra -Wshadow -Wconversion -Werror"
"$cmake" -S "$here/../../examples" -B "$work/examples" -G Ninja -DCMAKE_BUILD_TYPE= -DCMAKE_CXX_COMPILER="$compiler" \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="$strict" -DCMAKE_NO_SYSTEM_FROM_IMPORTED=ON >"$work/log" || { tail -n 30 "$work/log"; exit 1; }
"$cmake" --build "$work/examples" >"$work/log" || { tail -n 30 "$work/log"; exit 1; }
for file in "$here"/../../examples/*.cpp; do
  [ -x "$work/examples/$(basename "$file" .cpp)" ] || { echo "not built: $file"; exit 1; }
done
cd "$work"
check() {  # EXAMPLE PATTERN: it runs, and prints a line that matches
  if ! "examples/$1" >log 2>&1 || ! grep -q "$2" log; then
    echo "$1:"
    cat log
    exit 1
  fi
}
check your_own_optimizer "^epoch 3  loss 0.0"
check streamed_data "^epoch 3  loss 0.0"
check predict "^accuracy of the test set: 9"
check train_in_a_thread "^cancelled and saved"
for other in g++ clang++; do
  command -v $other >/dev/null || continue
  for standard in 20 2b; do
    # shellcheck disable=SC2086
    $other -std=c++$standard $strict -fsyntax-only -I"$prefix/include" -I"$prefix/include/tutti" "$here/../../examples/your_own_optimizer.cpp"
  done
done

echo "== pkg-config and SONAME"
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tutti.pc)")
export PKG_CONFIG_PATH
version=$(pkg-config --modversion tutti)
library=$(pkg-config --variable=libdir tutti)
grep -q "PACKAGE_VERSION \"$version\"" "$(find "$prefix" -name TuttiConfigVersion.cmake)" || { echo "versions differ"; exit 1; }
# The CMake package takes another version for its own where the minor version is the same: so does the loader.
[ -e "$library/libtutti.so.${version%.*}" ] || { ls "$library"; exit 1; }
# shellcheck disable=SC2046
"$compiler" -std=c++20 $(pkg-config --cflags tutti) "$here/consumer/consumer.cpp" -o by_pkg_config $(pkg-config --libs tutti) "-Wl,-rpath,$library"
./by_pkg_config
if command -v readelf >/dev/null; then
  readelf -d by_pkg_config | grep -q "NEEDED.*\[libtutti.so.${version%.*}\]" || { readelf -d by_pkg_config; exit 1; }
fi

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
