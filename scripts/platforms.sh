#!/usr/bin/env bash
# Builds for other platforms on this machine, and runs the tests there: `scripts/platforms.sh --help`.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/platforms.sh [--help] [--build] PLATFORM…

Builds Tutti for other platforms by a cross compiler and tests it in an emulator. Installs what is missing by apt (as root).

  aarch64    Linux on ARM: Debian's cross compiler, qemu-user. The engine, the command, and the plugins cpu, reference and opencl
  --build    build only

The tree is build/PLATFORM, the headers and libraries of the platform are in .deps/sysroot-PLATFORM. Programs of the platform run as
any other afterwards. For that the script registers the emulator (binfmt_misc) and links the platform's loader into /lib.
TEXT
}

platforms=() tests=yes
unit_tests=(blas_test test_base test_geometry test_kernels test_loader golden_test gradcheck_test growth_test sdk_test)
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --build) tests=no ;;
    aarch64) platforms+=("$1") ;;
    *) echo "platforms: unknown option or platform $1; platforms: aarch64 (see scripts/platforms.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#platforms[@]} -gt 0 ] || { usage >&2; exit 2; }
command -v apt-get >/dev/null || { echo "platforms: needs Debian's apt, for the cross compiler and its libraries" >&2; exit 1; }

# The libraries of Debian's release for another architecture, unpacked, not installed: SYSROOT ARCHITECTURE PACKAGE…
make_sysroot() {
  local root=$1 architecture=$2 release
  shift 2
  if [ "$(cat "$root/packages.txt" 2>/dev/null)" = "$*" ]; then return; fi
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  echo "platforms: unpacking $architecture packages of $release into $root"
  rm -rf "$root"
  mmdebstrap --quiet --variant=extract --architectures="$architecture" --include="$(IFS=,; echo "$*")" \
    "$release" "$root"
  if [ ! -L "$root/lib" ]; then  # merged with usr/lib, as where packages are installed
    cp -a "$root/lib/." "$root/usr/lib/"
    rm -rf "$root/lib"
    ln -s usr/lib "$root/lib"
  fi
  # Absolute links would lead to this machine's files.
  find "$root" -type l -lname '/*' | while read -r link; do ln -snfr "$root$(readlink "$link")" "$link"; done
  echo "$*" >"$root/packages.txt"
}

# Lets the kernel run programs of the platform: processes of Tutti start others.
register_emulator() {
  local known=/proc/sys/fs/binfmt_misc magic mask
  [ -e $known/register ] || mount -t binfmt_misc binfmt_misc $known || true
  [ ! -e $known/qemu-aarch64 ] || return 0
  magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
  mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ":qemu-aarch64:M::$magic:$mask:/usr/bin/qemu-aarch64:P" >$known/register || {
    echo "platforms: the kernel does not let programs be registered (binfmt_misc); install qemu-user-binfmt on the host" >&2
    return 1
  }
}

aarch64() {
  scripts/deps.sh --run --cross-aarch64
  make_sysroot "$PWD/.deps/sysroot-aarch64" arm64 libc6-dev libstdc++-12-dev libboost-dev libcli11-dev libfmt-dev nlohmann-json3-dev \
    zlib1g-dev libpcre2-dev libicu-dev libpng-dev libjpeg-dev libprotobuf-dev libgtest-dev libgmock-dev ocl-icd-opencl-dev \
    opencl-headers pocl-opencl-icd libopenblas-dev
  register_emulator
  # The loader of the platform's programs; their other libraries are found in the sysroot.
  [ -e /lib/ld-linux-aarch64.so.1 ] || ln -sfn "$PWD/.deps/sysroot-aarch64/usr/lib/ld-linux-aarch64.so.1" /lib/ld-linux-aarch64.so.1
  cmake --preset aarch64 >build/aarch64.log 2>&1 || { tail -n 40 build/aarch64.log >&2; return 1; }
  grep -E 'plugin: on' build/aarch64.log | sed 's/^-- /platforms: /'
  cmake --build --preset aarch64 --parallel "$(nproc)" --target tutti_cli tutti_cpu tutti_reference tutti_opencl "${unit_tests[@]}" \
    >>build/aarch64.log 2>&1 || {
    grep -E -A 12 'FAILED|error:' build/aarch64.log | tail -n 60 >&2
    return 1
  }
  [ $tests = yes ] || return 0
  # Where qemu-user differs from a kernel: threads of a forked process, and programs with another user's rights.
  local test without=-Team.TheChildOfAForkHasThreadsToo:Trust.PathVariablesAreIgnoredUnderElevatedPrivileges
  for test in "${unit_tests[@]}"; do
    echo "platforms: $test"
    (cd build/aarch64 && "tests/$test" --gtest_brief=1 "--gtest_filter=$without")
  done
  build/aarch64/bin/tutti report-device --device reference --quick --parts conformance,parity,lockstep,states --output build/aarch64/reference.json
  build/aarch64/bin/tutti report-device --device cpu:0 --quick --parts parity,lockstep,states --output build/aarch64/cpu.json
  # All but memory.refused: qemu-user does not limit the address space.
  build/aarch64/bin/tutti conformance build/aarch64/lib/tutti/plugins/libtutti_cpu.so --only \
    'negotiation.*,init.*,open.*,arguments.*,programs.*,growth.*,run.*,memory.re[lopt]*,memory.[!r]*,threads.*,device.*,product.*,op.*,model.*,process.*'
  # PoCL compiles for minutes here: one model, whose state must be that of the reference.
  local run=(train dlrm --size tiny --steps 5 --numerics exact --no-eval --quiet) state
  state=$(build/aarch64/bin/tutti "${run[@]}" --device reference | grep '^state')
  LD_LIBRARY_PATH=$PWD/.deps/sysroot-aarch64/usr/lib/aarch64-linux-gnu build/aarch64/bin/tutti "${run[@]}" --device opencl | grep -xF "$state"
}

mkdir -p build
for platform in "${platforms[@]}"; do
  echo "platforms: $platform"
  "$platform"
done
