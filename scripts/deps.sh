#!/usr/bin/env bash
# Installs what Tutti is built from, on Debian 12 and Ubuntu 22.04/24.04. Safe to run again; quick when all is there.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'TEXT'
usage: scripts/deps.sh [--help] [--run] [--lint] [--docs] [--pages] [--fuzz] [--cpu] [--cuda] [--vulkan] [--opencl] [--intel-opencl] [--webgpu] [--mpi]
                       [--cross-aarch64] [--cross-windows] [--packages]

Installs, by apt (as root or through sudo), what is missing of: a C++ compiler, CMake, ninja, ccache, git, Boost, CLI11,
fmt, nlohmann-json, zlib, PCRE2, libpng, libjpeg, protobuf, GoogleTest and the data set Fashion-MNIST. Takes oneDNN from the system where
that is 3.0 or newer, else from two wheels of PyPI, unpacked into .deps/onednn; where neither is to be had, installs OpenBLAS, as --cpu does.

  --run                        not what the tests and the Python package alone need: GoogleTest, venv, Python's headers, locales and
                               ONNX's test cases
  --lint                       also clang-format 14, clang-tidy 14 and codespell (scripts/lint.sh)
  --docs                       also Doxygen (scripts/docs.sh)
  --pages                      also Chromium and a font, for the tests that look at pages (Debian: Ubuntu's Chromium is a snap)
  --fuzz                       also clang 14 with libFuzzer and its sanitizers (scripts/fuzz.sh)
  --cpu                        also OpenBLAS, which makes the cpu plugin faster: the CPU without oneDNN
  --vulkan                     also what the vulkan plugin is built from (headers, loader, glslang), Mesa's drivers (their
                               software device runs on every machine) and the validation layer for its tests
  --opencl                     also what the opencl plugin is built from (headers, C++ bindings, ICD loader) and PoCL, which
                               runs OpenCL on the CPU
  --intel-opencl               --opencl, and Intel's OpenCL runtime for CPUs from PyPI (290 MB to fetch, 500 MB on disk,
                               under Intel's own licence) into .deps/intel-opencl; it is used where OCL_ICD_VENDORS names
                               .deps/intel-opencl/vendors
  --webgpu                     --vulkan, and wgpu-native with its headers, from PyPI's wheel of wgpu (3 MB), into .deps/wgpu:
                               examples/plugins/webgpu is built from them and tested where they are
  --mpi                        also Open MPI, over which processes train one model (docs/DISTRIBUTED.md), and MPICH 5 from PyPI
                               (13 MB) into .deps/mpich, for the standard ABI of MPI 5
  --packages                   also what checks Debian packages (scripts/packages.sh)
  --cross-aarch64              also the compiler and the emulator for Linux on ARM (scripts/platforms.sh)
  --cross-windows              also mingw-w64 and Wine for Windows on x86-64 (scripts/platforms.sh)
  --cuda                       looks for the headers that the cuda plugin is built from (cuda.h and nvrtc.h of CUDA 12 or 13,
                               cublasLt.h, cudnn.h of cuDNN 9). Installs nvidia-cuda-dev where the system has it in
                               version 12 or newer (Debian 12 has 11.8, too old); cuDNN it never installs. Says
                               what is missing and where to get it, and fetches the headers of cudnn-frontend from PyPI (12 MB)
                               into .deps/cudnn-frontend. No NVIDIA library or driver is needed to build
TEXT
}

extra=()
tests=(python3-venv python3-dev libgtest-dev libgmock-dev libonnx-testdata locales)
intel_opencl=no cuda=no webgpu=no mpi=no
for arg in "$@"; do
  case "$arg" in
    -h | --help) usage; exit 0 ;;
    --run) tests=() ;;
    --lint) extra+=(clang-format-14 clang-tidy-14 codespell) ;;
    --docs) extra+=(doxygen) ;;
    --pages) extra+=(chromium fonts-dejavu-core) ;;
    --fuzz) extra+=(clang-14 libclang-rt-14-dev) ;;
    --cpu) extra+=(libopenblas-dev pkg-config) ;;
    --vulkan | --webgpu)
      extra+=(libvulkan-dev glslang-dev glslang-tools mesa-vulkan-drivers vulkan-validationlayers)
      [ "$arg" = --vulkan ] || webgpu=yes ;;
    --opencl | --intel-opencl)
      extra+=(ocl-icd-opencl-dev opencl-clhpp-headers pocl-opencl-icd)
      [ "$arg" = --opencl ] || intel_opencl=yes ;;
    --mpi) extra+=(libopenmpi-dev openmpi-bin); mpi=yes ;;
    --cross-aarch64) extra+=(g++-aarch64-linux-gnu qemu-user-static arch-test mmdebstrap pkg-config) ;;
    --cross-windows) extra+=(g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine64 wine googletest xvfb) ;;
    --packages) extra+=(dpkg-dev file lintian mmdebstrap) ;;
    --cuda) cuda=yes ;;
    *) echo "deps: unknown option $arg (see scripts/deps.sh --help)" >&2; exit 2 ;;
  esac
done

needed=(g++ cmake ninja-build ccache git ca-certificates python3 libboost-dev libcli11-dev libfmt-dev
        nlohmann-json3-dev zlib1g-dev libpcre2-dev libicu-dev libpng-dev libjpeg-dev libprotobuf-dev protobuf-compiler ${tests[@]+"${tests[@]}"} ${extra[@]+"${extra[@]}"})
dataset="dataset-fashion-mnist"

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '(none)' || true; }

as_root() {
  if [ "$(id -u)" = 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    echo "deps: needs root (no sudo here). Ask for: apt-get install -y ${needed[*]} $dataset" >&2
    return 1
  fi
}

updated=no
update_once() {
  [ "$updated" = yes ] && return 0
  echo "deps: apt-get update"
  as_root apt-get update -qq
  updated=yes
}

apt_install() {
  echo "deps: apt-get install $*"
  as_root apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if ! command -v apt-get >/dev/null; then
  echo "deps: no apt here; install these yourself (Debian's names): ${needed[*]} $dataset"
else
  missing=()
  for p in "${needed[@]}"; do installed "$p" || missing+=("$p"); done
  if [ ${#missing[@]} -gt 0 ]; then
    update_once
    apt_install "${missing[@]}"
  fi
  if ! installed "$dataset"; then
    update_once
    if [ -n "$(candidate "$dataset")" ]; then
      apt_install "$dataset" || echo "deps: $dataset could not be installed; train with --data synthetic:1x28x28:10"
    else
      echo "deps: this system has no package $dataset; set TUTTI_DATA_DIR to a folder with the four IDX files," \
           "or train with --data synthetic:1x28x28:10"
    fi
  fi
fi

# ---- oneDNN, 3.x API ----
tree=.deps/onednn

has_onednn3() {  # a prefix whose headers say 3.0 or newer, with the library beside them
  local major
  major=$(sed -n 's/^#define DNNL_VERSION_MAJOR *\([0-9]*\).*/\1/p' "$1/include/oneapi/dnnl/dnnl_version.h" 2>/dev/null)
  [ "${major:-0}" -ge 3 ] && compgen -G "$1/lib/libdnnl.so" "$1/lib/*-linux-gnu/libdnnl.so" >/dev/null
}

need_pip() {
  python3 -m pip --version >/dev/null 2>&1 && return 0
  command -v apt-get >/dev/null || { echo "deps: python3 has no pip" >&2; return 1; }
  update_once && apt_install python3-pip
}

fetch_wheels() {  # FOLDER PACKAGE==VERSION…: wheels from PyPI into a new folder, checked against the sums on stdin
  local folder=$1
  shift
  need_pip || return 1
  rm -rf "$folder" && mkdir -p "$folder" || return 1
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --dest "$folder" "$@" || return 1
  (cd "$folder" && sha256sum --quiet -c)
}

onednn_from_pypi() {
  local version=2023.2.0 staging=.deps/staging wheel from
  echo "deps: oneDNN: fetching onednn-cpu-gomp and onednn-devel-cpu-gomp $version from PyPI (38 MB) into $tree"
  fetch_wheels "$staging" "onednn-cpu-gomp==$version" "onednn-devel-cpu-gomp==$version" <<'TEXT' || return 1
2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb  onednn_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284  onednn_devel_cpu_gomp-2023.2.0-py2.py3-none-manylinux1_x86_64.whl
TEXT
  # Both wheels go into one tree: the CMake package of the second looks for the library of the first beside itself.
  mkdir "$staging/tree" || return 1
  for wheel in "$staging"/*.whl; do
    python3 -m zipfile -e "$wheel" "$staging/unpacked" || return 1
    for from in "$staging"/unpacked/*.data/data; do cp -a "$from/." "$staging/tree/" || return 1; done
    rm -rf "$staging/unpacked"
  done
  # The library comes three times, as whole files.
  ln -sf libdnnl.so.3.2 "$staging/tree/lib/libdnnl.so.3" && ln -sf libdnnl.so.3 "$staging/tree/lib/libdnnl.so" &&
    chmod 755 "$staging/tree/lib/libdnnl.so.3.2" && rm -rf "$tree" && mv "$staging/tree" "$tree" && rm -rf "$staging"
}

get_onednn() {
  local prefix package
  for prefix in "$tree" /usr /usr/local ${DNNL_ROOT:+"$DNNL_ROOT"}; do has_onednn3 "$prefix" && return 0; done
  if command -v apt-get >/dev/null; then
    package=$(candidate libdnnl-dev)
    if [ -n "$package" ] && dpkg --compare-versions "$package" ge 3; then
      update_once && apt_install libdnnl-dev && return 0
    fi
  fi
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps: oneDNN: no package >= 3 here, and the wheels are for x86_64 alone"
    return 1
  fi
  onednn_from_pypi
}

if ! get_onednn; then
  rm -rf .deps/staging
  echo "deps: oneDNN: not available, the onednn plugin will be off and models run on the cpu plugin; run scripts/deps.sh again to retry"
  if command -v apt-get >/dev/null && ! { installed libopenblas-dev && installed pkg-config; }; then
    { update_once && apt_install libopenblas-dev pkg-config; } || echo "deps: OpenBLAS could not be installed; the cpu plugin has products of its own"
  fi
fi

# ---- Intel's OpenCL runtime for CPUs ----
intel=.deps/intel-opencl

intel_from_pypi() {
  local staging=.deps/staging-intel wheel file
  echo "deps: Intel OpenCL: fetching intel-opencl-rt and intel-cmplr-lib-rt 2026.2.0 and tbb 2023.2.0 from PyPI (290 MB) into $intel"
  fetch_wheels "$staging" intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0 <<'TEXT' || return 1
6b6215a420598b4999ee01caca6d5cbe106aa4155c46c52377619c5aafce9f67  intel_opencl_rt-2026.2.0-py2.py3-none-manylinux_2_28_x86_64.whl
9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748  intel_cmplr_lib_rt-2026.2.0-py2.py3-none-manylinux_2_28_x86_64.whl
7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c  tbb-2023.2.0-py2.py3-none-manylinux_2_28_x86_64.whl
TEXT
  mkdir "$staging/tree" || return 1
  for wheel in "$staging"/*.whl; do
    python3 -m zipfile -e "$wheel" "$staging/unpacked" || return 1
    cp -al "$staging"/unpacked/*.data/data/. "$staging/tree/" || return 1
    file=$(basename "$wheel")
    mkdir -p "$staging/tree/share/doc/${file%%-*}" || return 1
    cp "$staging"/unpacked/*.dist-info/LICENSE* "$staging/tree/share/doc/${file%%-*}/" || return 1
    rm -rf "$staging/unpacked"
  done
  # The libraries come up to three times, as whole files; a loader of its own would hide the system's.
  rm -f "$staging"/tree/lib/libOpenCL.so*
  for file in "$staging"/tree/lib/*.so "$staging"/tree/lib/*.so.[0-9]*; do
    for wheel in "$file".*; do
      if [ -f "$file" ] && [ ! -L "$file" ] && [ -f "$wheel" ] && cmp -s "$file" "$wheel"; then
        ln -sf "$(basename "$wheel")" "$file" || return 1
      fi
    done
  done
  rm -rf "$intel" && mv "$staging/tree" "$intel" && rm -rf "$staging"
}

# A folder of .icd files for OCL_ICD_VENDORS: the system's, and Intel's with its absolute path.
intel_vendors() {
  rm -rf "$intel/vendors" && mkdir "$intel/vendors" || return 1
  if compgen -G "/etc/OpenCL/vendors/*.icd" >/dev/null; then cp /etc/OpenCL/vendors/*.icd "$intel/vendors/" || return 1; fi
  echo "$PWD/$intel/lib/libintelocl.so" >"$intel/vendors/intel-cpu.icd"
}

if [ $intel_opencl = yes ]; then
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps: Intel OpenCL: its wheels are for x86_64 alone"
  elif { [ -e "$intel/lib/libintelocl.so" ] || intel_from_pypi; } && intel_vendors; then
    echo "deps: Intel OpenCL: to use it, export OCL_ICD_VENDORS=$PWD/$intel/vendors"
  else
    rm -rf .deps/staging-intel
    echo "deps: Intel OpenCL: not available; run scripts/deps.sh --intel-opencl again to retry"
  fi
fi

# ---- wgpu-native, for examples/plugins/webgpu ----
wgpu=.deps/wgpu

wgpu_from_pypi() {
  local version=0.32.0 staging=.deps/staging-wgpu from
  echo "deps: WebGPU: fetching wgpu $version from PyPI (3 MB) into $wgpu"
  fetch_wheels "$staging" "wgpu==$version" <<'TEXT' || return 1
6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568  wgpu-0.32.0-py3-none-manylinux_2_28_x86_64.whl
TEXT
  mkdir -p "$staging/tree/include" "$staging/tree/lib" || return 1
  python3 -m zipfile -e "$staging"/*.whl "$staging/unpacked" || return 1
  from=$staging/unpacked/wgpu/resources
  cp "$from/wgpu.h" "$from/webgpu.h" "$staging/tree/include/" &&
    cp "$from/libwgpu_native-release.so" "$staging/tree/lib/libwgpu_native.so" &&
    cp "$staging"/unpacked/*.dist-info/licenses/LICENSE "$staging/tree/" || return 1
  rm -rf "$wgpu" && mv "$staging/tree" "$wgpu" && rm -rf "$staging"
}

if [ $webgpu = yes ]; then
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps: WebGPU: the wheel that is pinned here is for x86_64 alone"
  elif [ -e "$wgpu/lib/libwgpu_native.so" ] || wgpu_from_pypi; then
    echo "deps: WebGPU: wgpu-native is in $wgpu"
  else
    rm -rf .deps/staging-wgpu
    echo "deps: WebGPU: not available; run scripts/deps.sh --webgpu again to retry"
  fi
fi

# ---- MPICH, for the standard ABI of MPI 5 ----
mpich=.deps/mpich

mpich_from_pypi() {
  local version=5.0.2 staging=.deps/staging-mpich
  echo "deps: MPI: fetching mpich $version from PyPI (13 MB) into $mpich"
  fetch_wheels "$staging" "mpich==$version" <<'TEXT' || return 1
8fed465ebff269ea2ebac179a25de02671ddf8df476e0f115be089015015cfd4  mpich-5.0.2-py3-none-manylinux_2_28_x86_64.whl
TEXT
  python3 -m zipfile -e "$staging"/*.whl "$staging/unpacked" || return 1
  chmod 755 "$staging"/unpacked/*.data/data/bin/* || return 1
  rm -rf "$mpich" && mv "$staging"/unpacked/*.data/data "$mpich" &&
    cp -r "$staging"/unpacked/*.dist-info/licenses "$mpich/" && rm -rf "$staging"
}

if [ $mpi = yes ]; then
  if [ "$(uname -m)" != x86_64 ]; then
    echo "deps: MPI: the wheel of MPICH that is pinned here is for x86_64 alone"
  elif [ -e "$mpich/lib/libmpi_abi.so" ] || mpich_from_pypi; then
    echo "deps: MPI: MPICH is in $mpich"
  else
    rm -rf .deps/staging-mpich
    echo "deps: MPI: MPICH is not available; run scripts/deps.sh --mpi again to retry"
  fi
fi

# ---- CUDA's headers; its libraries are opened at run time ----
missing_cuda_headers() {
  local prefix header found
  for header in "$@"; do
    found=no
    for prefix in ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} /usr/local/cuda /usr/local /usr; do
      [ ! -e "$prefix/include/$header" ] || found=yes
    done
    [ $found = yes ] || echo "$header"
  done
}

cudnn_frontend=.deps/cudnn-frontend

cudnn_frontend_from_pypi() {
  local version=1.32.0 staging=.deps/staging-cudnn
  echo "deps: CUDA: fetching the headers of cudnn-frontend $version from PyPI (12 MB) into $cudnn_frontend"
  fetch_wheels "$staging" --python-version 3.11 --platform manylinux_2_28_x86_64 "nvidia-cudnn-frontend==$version" <<'TEXT' || return 1
c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0  nvidia_cudnn_frontend-1.32.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl
TEXT
  python3 -m zipfile -e "$staging"/*.whl "$staging/unpacked" || return 1
  cp "$staging"/unpacked/*.dist-info/licenses/LICENSE* "$staging/unpacked/include/" && rm -rf "$cudnn_frontend" &&
    mkdir "$cudnn_frontend" && mv "$staging/unpacked/include" "$cudnn_frontend/" && rm -rf "$staging"
}

get_cuda_headers() {
  local missing package
  missing=$(missing_cuda_headers cuda.h nvrtc.h cublasLt.h)
  if [ -n "$missing" ] && command -v apt-get >/dev/null; then
    update_once
    package=$(candidate nvidia-cuda-dev)
    if [ -n "$package" ] && dpkg --compare-versions "$package" ge 12; then apt_install nvidia-cuda-dev || true; fi
    missing=$(missing_cuda_headers cuda.h nvrtc.h cublasLt.h)
  fi
  if [ -n "$missing" ]; then
    echo "deps: CUDA: missing: ${missing//$'\n'/ }; install NVIDIA's CUDA toolkit 12 or 13 (https://developer.nvidia.com/cuda-downloads)"
  fi
  if [ -n "$(missing_cuda_headers cudnn.h)" ]; then
    missing+=" cudnn.h"
    echo "deps: CUDA: missing: cudnn.h; install cuDNN 9 (https://developer.nvidia.com/cudnn-downloads)"
  fi
  [ -z "$missing" ] || echo "deps: CUDA: the cuda plugin will be off until these are there"
  if [ -z "$missing" ] && [ ! -e "$cudnn_frontend/include/cudnn_frontend.h" ] && ! cudnn_frontend_from_pypi; then
    rm -rf .deps/staging-cudnn
    echo "deps: CUDA: cudnn-frontend is not available: attention and channels-last convolutions will not use cuDNN; run scripts/deps.sh --cuda again to retry"
  fi
}

if [ $cuda = yes ]; then get_cuda_headers; fi
echo "deps: ready"
