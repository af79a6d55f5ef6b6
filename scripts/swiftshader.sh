#!/usr/bin/env bash
# Runs a command with SwiftShader as the only Vulkan driver: a second software device beside lavapipe. The driver is taken
# from Debian's package chromium-common (30 MB to fetch), which is unpacked into .deps/swiftshader and not installed. Without
# COMMAND: every op of `tutti parity --quick`, conformance of the plugin, and all tiny models in lockstep (minutes).
#
# usage: swiftshader.sh [--build FOLDER] [COMMAND...]
# Exit code: the command's; without one, 1 if anything failed; 2: a bad argument, or the driver cannot be fetched.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
build="$root/build/release" driver="$root/.deps/swiftshader"
if [ "${1:-}" = --build ]; then
  build="${2:?--build needs a folder}"
  shift 2
fi

fetch() {
  local staging="$root/.deps/staging-swiftshader" from
  rm -rf "$staging" && mkdir -p "$staging" && cd "$staging" || return 1
  apt-get download -qq chromium-common 2>/dev/null >/dev/null && dpkg -x chromium-common_*.deb . || return 1
  from=usr/lib/chromium
  mkdir -p "$driver" && cp "$from/libvk_swiftshader.so" "$from/vk_swiftshader_icd.json" "$driver/" && rm -rf "$staging"
}
if [ ! -e "$driver/vk_swiftshader_icd.json" ] && ! (fetch); then
  rm -rf "$root/.deps/staging-swiftshader"
  echo "swiftshader: cannot fetch the package chromium-common with apt-get download" >&2
  exit 2
fi
export VK_ICD_FILENAMES="$driver/vk_swiftshader_icd.json" TUTTI_PLUGINS=vulkan,reference
[ $# = 0 ] || exec "$@"

tutti="$build/bin/tutti" failed=0
run() {
  local code=0
  "$@" || code=$?
  echo "swiftshader: exit code $code: $*"
  [ $code = 0 ] || failed=1
}
run "$tutti" parity --quick --device vulkan:0 --jobs "$(nproc)"
run "$tutti" conformance "$build/lib/tutti/plugins/libtutti_vulkan.so"
for model in $("$tutti" models --json | python3 -c '
import json, sys
print(*[m["name"] for m in json.load(sys.stdin)["models"] if any(s["name"] == "tiny" for s in m["sizes"])])'); do
  run "$tutti" parity --device vulkan:0 --model "$model" --size tiny --steps 3
done
exit $failed
