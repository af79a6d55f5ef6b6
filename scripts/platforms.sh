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

. scripts/packages/aarch64.sh

aarch64() {
  scripts/deps.sh --run --cross-aarch64
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

# The headers of Debian's packages, and libraries that Debian has no mingw package of, built from its sources: SYSROOT
windows_sysroot() {
  local root=$1 work=$1/work source name
  local headers=(libboost1.74-dev libcli11-dev nlohmann-json3-dev opencl-c-headers opencl-clhpp-headers libvulkan-dev)
  local sources=(fmtlib pcre2 glslang)
  if [ "$(cat "$root/packages.txt" 2>/dev/null)" = "${headers[*]} ${sources[*]}" ]; then return; fi
  echo "platforms: making the libraries of windows in $root"
  rm -rf "$root"
  mkdir -p "$work/lists/partial"
  (cd "$work" && apt-get download -qq "${headers[@]}" && for name in *.deb; do dpkg-deb -x "$name" "$root"; done)
  # OpenCL.dll is a part of Windows: what programs are linked with is a list of the functions that cl.h declares.
  (echo EXPORTS && grep -oE '^cl[A-Z][A-Za-z]+' "$root/usr/include/CL/cl.h" | sort -u) >"$work/OpenCL.def"
  mkdir -p "$root/usr/lib"
  x86_64-w64-mingw32-dlltool -d "$work/OpenCL.def" -D OpenCL.dll -l "$root/usr/lib/libOpenCL.dll.a"
  # Sources of the same release, without a change of the system's own lists.
  local options=(-qq -o Dir::Etc::sourcelist="$work/source.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists")
  echo "deb-src http://deb.debian.org/debian $(. /etc/os-release && echo "$VERSION_CODENAME") main" >"$work/source.list"
  (cd "$work" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only "${sources[@]}" 2>/dev/null)
  for name in "${sources[@]}"; do
    mkdir "$work/$name"
    tar -xf "$(echo "$work/${name}"_*.orig.tar.*)" --strip-components=1 -C "$work/$name"
  done
  # glslang without its optimizer, which needs SPIRV-Tools: the plugin does not use it.
  for source in "$work/fmtlib" "$work/pcre2" "$work/glslang" /usr/src/googletest; do
    name=$(basename "$source")
    cmake -S "$source" -B "$work/build-$name" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/windows.cmake" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_INSTALL_PREFIX="$root/usr" -DFMT_TEST=OFF -DFMT_DOC=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF \
      -DENABLE_OPT=OFF -DENABLE_HLSL=OFF -DENABLE_GLSLANG_BINARIES=OFF -DENABLE_CTEST=OFF -DENABLE_PCH=OFF
    cmake --build "$work/build-$name" --target install
  done >"$root.log" 2>&1 || { tail -n 40 "$root.log" >&2; return 1; }
  rm -rf "$work"
  echo "${headers[*]} ${sources[*]}" >"$root/packages.txt"
}

windows() {
  scripts/deps.sh --run --cross-windows --opencl --vulkan  # Wine passes calls on to this machine's drivers
  windows_sysroot "$PWD/.deps/sysroot-windows"
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
  export WINEPREFIX=$PWD/$build/wine WINEDEBUG=-all
  mkdir -p "$WINEPREFIX"
  # Wine has Vulkan only where it has a screen. What still runs there from before has none.
  wineserver -k || true
  coproc screen { exec Xvfb -displayfd 1 -screen 0 640x480x24 -nolisten tcp 2>/dev/null; }
  trap 'kill "$screen_PID"' EXIT
  read -r DISPLAY <&"${screen[0]}"
  export DISPLAY=:$DISPLAY
  wineboot -i >/dev/null 2>&1
  wine reg add 'HKCU\Software\Wine\WineDbg' /v ShowCrashDialog /t REG_DWORD /d 0 /f >/dev/null 2>&1  # tests crash on purpose
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
