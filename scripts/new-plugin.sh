#!/usr/bin/env bash
# new-plugin.sh [--card] NAME DIR (installed as tutti-new-plugin): a plugin of your own. Copies the template, a complete
# backend on the host's threads, to the folder DIR, which must be new or empty, and renames it to NAME. --card lays the
# files of plugins/card over it: a device with memory of its own, a queue and a vendor's product.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)

fail() {
  echo "new-plugin: $1" >&2
  exit 2
}

if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
  echo "usage: $(basename "$0") [--card] NAME DIR"
  echo "Writes a plugin named NAME (a-z, 0-9, _) into the new folder DIR; its README.md has the next commands."
  echo "  --card  its device has memory of its own, a queue and a vendor's product"
  exit 0
fi
layers=(template)
if [ "${1:-}" = --card ]; then
  layers+=(card)
  shift
fi
[ $# -eq 2 ] || fail "two arguments are needed, NAME and DIR; got $#"
name=$1 folder=$2

from=
for candidate in "$here/../plugins" "$here/../share/tutti" "$here/../../share/tutti"; do  # the last: vcpkg, in tools/tutti
  [ -f "$candidate/template/myplugin.json" ] && from=$candidate && break
done
[ -n "$from" ] || fail "the template is neither in $here/../plugins nor in $here/../share/tutti; install Tutti again"

[[ $name =~ ^[a-z][a-z0-9_]*$ ]] || fail "the name '$name' must begin with a-z and hold only a-z, 0-9 and _"
[ ${#name} -le 32 ] || fail "the name '$name' has ${#name} letters; 32 are allowed"
case $name in
  all | auto) fail "the name '$name' has a meaning of its own for --device; take another" ;;
  cpu | cuda | mock | mpi | onednn | opencl | reference | vulkan) fail "'$name' is a plugin of Tutti's own; take another name" ;;
esac
[ -n "$folder" ] || fail "DIR is empty"
[ ! -e "$folder" ] || [ -d "$folder" ] || fail "'$folder' exists and is not a folder"
[ -z "$(ls -A "$folder" 2>/dev/null)" ] || fail "the folder '$folder' is not empty; name a new one"

umask 022  # plugins that others can write are not loaded
mkdir -p "$folder" 2>/dev/null || fail "the folder '$folder' cannot be made"
for layer in "${layers[@]}"; do
  cp -- "$from/$layer"/* "$folder" || fail "the $layer cannot be copied to '$folder'"
done
mv -- "$folder/myplugin.json" "$folder/$name.json" 2>/dev/null || [ "$name" = myplugin ]
sed -i "s/myplugin/$name/g" "$folder"/*
echo "$folder holds the plugin $name. Build it, and let tutti find it:"
echo "  cmake -S $folder -B $folder/build && cmake --build $folder/build"
echo "  export TUTTI_PLUGIN_PATH=$(cd "$folder" && pwd)/build/plugins"
echo "  tutti devices"
