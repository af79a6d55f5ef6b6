#!/usr/bin/env bash
# Debian packages, and their test in a clean system: `scripts/packages.sh --help`.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/packages.sh [--help] [--output DIR] [--no-build] [--no-test]

Builds Debian packages for this release of Debian or Ubuntu, by CPack: tutti, libtutti0.2, libtutti-dev, tutti-plugin-NAME for each plugin
that can be built here (scripts/deps.sh --opencl --vulkan --mpi). Fails on errors of lintian. Then installs them in a minimal system in a
folder (needs root), trains, builds a program, removes them, and looks for files that stay.

  --output DIR   where the packages go (default: dist/deb)
  --no-build     take build/release as it is
  --no-test      build and check only
TEXT
}

output=dist/deb builds=yes tests=yes
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --no-build) builds=no ;;
    --no-test) tests=no ;;
    --output)
      [ $# -ge 2 ] || { echo "packages: --output needs a folder (see scripts/packages.sh --help)" >&2; exit 2; }
      output=$2; shift ;;
    *) echo "packages: unknown option $1 (see scripts/packages.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
command -v apt-get >/dev/null || { echo "packages: needs Debian's or Ubuntu's apt" >&2; exit 1; }

if [ $builds = yes ]; then
  deps=(--packages --cpu)
  . scripts/build.sh
  build
fi
[ -f build/release/CPackConfig.cmake ] || { echo "packages: build/release is not built (scripts/build.sh)" >&2; exit 1; }
mkdir -p "$output"
output=$(cd "$output" && pwd)
log=$PWD/build/packages.log
rm -f "$output"/*.deb
(umask 022 && cd build/release && cpack -B "$output") >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  echo "packages: cpack failed, see $log" >&2
  exit 1
}
rm -rf "$output/_CPack_Packages"
ls -1sh "$output"
lintian --allow-root --tag-display-limit 0 --fail-on error "$output"/*.deb >build/lintian.txt || {
  grep '^E:' build/lintian.txt >&2
  echo "packages: lintian found errors" >&2
  exit 1
}
[ $tests = yes ] || exit 0

[ "$(id -u)" = 0 ] || { echo "packages: the test needs root, for a chroot (or --no-test)" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
echo "packages: a minimal $release in a folder"
. scripts/packages/system.sh
minimal_system "$release" "$root"
mkdir "$root/packages"
cp "$output"/*.deb scripts/packages/use.sh "$root/packages"
in_system "$root" sh /packages/use.sh
echo "packages: installed, used and removed"
