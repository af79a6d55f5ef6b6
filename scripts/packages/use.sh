#!/bin/sh
# In a minimal Debian, as root: installs the packages of /packages, uses them, removes them (scripts/packages.sh).
set -eu
export DEBIAN_FRONTEND=noninteractive
cd /packages
apt-get update -qq

# What runs, without a compiler.
apt-get install -y -qq --no-install-recommends ./tutti_*.deb ./libtutti0*.deb ./tutti-plugin-onednn_*.deb ./tutti-plugin-reference_*.deb >/dev/null
test ! -e /usr/bin/cc
tutti --version
tutti devices
tutti train mlp --data synthetic:1x28x28:10 --steps 50 --checkpoint /tmp/mlp.safetensors
tutti eval /tmp/mlp.safetensors --data synthetic:1x28x28:10 --device reference
tutti doctor --no-steps >/dev/null

# What programs are built with.
apt-get install -y -qq --no-install-recommends ./libtutti-dev_*.deb g++ pkg-config >/dev/null
cat >/tmp/program.cpp <<'CPP'
#include <tutti/tutti.h>
#include <cstdio>
int main() { std::printf("%s\n", tutti::select_device("auto").id.c_str()); }
CPP
g++ -std=c++20 /tmp/program.cpp $(pkg-config --cflags --libs tutti) -o /tmp/program
/tmp/program

# Every package installs beside the others, and leaves nothing.
apt-get install -y -qq --no-install-recommends ./*.deb >/dev/null
tutti devices
apt-get purge -y -qq 'tutti*' 'libtutti*' >/dev/null
left=$(find / -xdev -ipath '*tutti*' -not -path '/packages/*' -not -path '/proc/*' -not -path '/root/*' -not -path '/tmp/*')
[ -z "$left" ] || { echo "packages: these files stay after purge:" >&2; echo "$left" >&2; exit 1; }
