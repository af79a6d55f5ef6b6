#!/usr/bin/env bash
# scripts/packages.sh on the tree that the tests use.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ "$1" -ef build/release ] || { echo "skipped: packages are those of build/release"; exit 77; }
[ "$(id -u)" = 0 ] || { echo "skipped: not root"; exit 77; }
for tool in apt-get lintian mmdebstrap; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool (scripts/deps.sh --packages)"; exit 77; }
done
unshare --mount --propagation private mount -t tmpfs none /mnt || { echo "skipped: this system allows no mounts"; exit 77; }
output=$(mktemp -d)
trap 'rm -rf "$output"' EXIT
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=extract --include=hostname "$release" "$output/probe" || {
  echo "skipped: no packages of $release can be fetched"
  exit 77
}
rm -rf "$output/probe"
scripts/packages.sh --no-build --output "$output"
