#!/usr/bin/env bash
# Runs a command in a minimal Debian 13 with the Mesa of its backports: a newer lavapipe, which has cooperative matrices, with
# Vulkan's validation layers. The system is made once, in .deps/lavapipe (about 500 MB), as root, by mmdebstrap. There the build is
# /host, its command is in PATH, and libraries that only this machine has are found.
#
# usage: lavapipe.sh [--build FOLDER] COMMAND [ARGUMENT...]
# Exit code: the command's; 77: the system cannot be made here; 2: a bad argument.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages/system.sh
build=build/release system=$PWD/.deps/lavapipe
if [ "${1:-}" = --build ]; then
  build="${2:?--build needs a folder}"
  shift 2
fi
[ $# -gt 0 ] || { echo "lavapipe: a command is needed" >&2; exit 2; }
[ -x "$build/bin/tutti" ] || { echo "lavapipe: $build/bin/tutti is not built" >&2; exit 2; }

no_system() {
  echo "lavapipe: no system with a newer lavapipe: $1" >&2
  exit 77
}
if [ ! -e "$system/etc/debian_version" ]; then
  [ "$(id -u)" = 0 ] || no_system "making it needs root"
  command -v mmdebstrap >/dev/null || no_system "mmdebstrap is not installed"
  rm -rf "$system.part"
  mkdir -p "$(dirname "$system")"
  minimal_system trixie-backports "$system.part" mesa-vulkan-drivers libvulkan1 vulkan-validationlayers >&2 &&
    [ -e "$system.part/usr/share/vulkan/icd.d/lvp_icd.json" ] ||
    { rm -rf "$system.part"; no_system "mmdebstrap cannot fetch it (is there a network?)"; }
  mv "$system.part" "$system"
fi
unshare --mount true 2>/dev/null || no_system "this process may not mount"

libraries=$system/opt/tutti
rm -rf "$libraries"
mkdir -p "$libraries"
ldd "$build/bin/tutti" "$build"/lib/tutti/plugins/libtutti_{vulkan,reference}.so | awk '/=> \// && !/libtutti/ {print $3}' | sort -u |
  while read -r library; do
    [ -n "$(find "$system/usr/lib" -name "$(basename "$library")" -print -quit)" ] || cp -L "$library" "$libraries/"
  done
host=$(realpath "$build")
in_system "$system" env PATH=/host/bin:/usr/bin:/bin LD_LIBRARY_PATH=/opt/tutti TUTTI_CACHE=/tmp/cache "$@"
