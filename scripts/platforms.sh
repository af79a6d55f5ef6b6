#!/usr/bin/env bash
# Builds for other platforms on this machine, and runs the tests there: `scripts/platforms.sh --help`.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/platforms.sh [--help] [--build] PLATFORM…

Builds Tutti for other platforms by a cross compiler and tests it in an emulator. Installs what is missing by apt (as root).

  aarch64    Linux on ARM: Debian's cross compiler, qemu-user. The engine, the command, and the plugins cpu, reference and opencl
  windows    Windows on x86-64: mingw-w64, Wine. The engine, the command, and the plugins cpu, reference, opencl and vulkan
  --build    build only

The tree is build/PLATFORM, the headers and libraries of the platform are in .deps/sysroot-PLATFORM. For aarch64 the
script registers the emulator (binfmt_misc) and links the platform's loader into /lib: its programs run as any other afterwards. Windows'
programs run by `wine`, with a folder of their own (build/windows/wine) in the place of ~/.wine.
TEXT
}

platforms=() tests=yes
unit_tests=(blas_test test_base test_geometry test_kernels test_loader golden_test gradcheck_test growth_test sdk_test)
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --build) tests=no ;;
    aarch64 | windows) platforms+=("$1") ;;
    *) echo "platforms: unknown option or platform $1; platforms: aarch64, windows (see scripts/platforms.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
[ ${#platforms[@]} -gt 0 ] || { usage >&2; exit 2; }
command -v apt-get >/dev/null || { echo "platforms: needs Debian's apt, for the cross compiler and its libraries" >&2; exit 1; }

. scripts/packages/system.sh
. scripts/packages/aarch64.sh
. scripts/packages/windows.sh

aarch64() {
  aarch64_sysroot
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

windows() {
  windows_sysroot
  local build=build/windows test
  local units=(test_os test_base test_geometry test_kernels blas_test sdk_test growth_test golden_test golden_devices gradcheck_test)
  local devices=(opencl_driver_test vulkan_test op_parity parity_suite)
  cmake --preset windows >build/windows.log 2>&1 || { tail -n 40 build/windows.log >&2; return 1; }
  grep -E 'plugin: on' build/windows.log | sed 's/^-- /platforms: /'
  cmake --build --preset windows --parallel "$(nproc)" --target tutti tutti_cli tutti_probe tutti_cpu tutti_reference tutti_opencl tutti_vulkan \
    os_child "${units[@]}" "${devices[@]}" \
    >>build/windows.log 2>&1 || {
    grep -E -A 12 'FAILED|error:' build/windows.log | tail -n 60 >&2
    return 1
  }
  [ $tests = yes ] || return 0
  start_wine "$PWD/$build/wine"
  for test in "${units[@]}"; do
    echo "platforms: $test"
    (cd $build && TUTTI_PLUGINS=cpu,reference wine "tests/$test.exe" --gtest_brief=1)
  done
  # Where Wine differs: its Vulkan reads none of a program's changes of variables, its OpenCL has no functions of extensions.
  local without=-VulkanPluginTest.*:OpenClTest.recorded_launches_give_what_single_ones_give
  for test in "${devices[@]}"; do
    echo "platforms: $test"
    (cd $build && TUTTI_REQUIRE=opencl,vulkan wine "tests/$test.exe" --gtest_brief=1 "--gtest_filter=$without")
  done
  python3 tests/platforms/windows_test.py "$PWD/$build"
}

mkdir -p build
for platform in "${platforms[@]}"; do
  echo "platforms: $platform"
  "$platform"
done
