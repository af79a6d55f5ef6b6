#!/usr/bin/env bash
# Builds and installs for recipe.yaml: what a package needs is on, or configuring fails; what none takes is off.
set -euo pipefail
# The compiler cache of who builds: the home folder is another here, and so is the locale, which is part of its keys.
[ -n "${CCACHE_DIR:-}" ] || unset CCACHE_DIR
unset LC_ALL
# shellcheck disable=SC2086  # CMAKE_ARGS are several options
cmake -S . -B build/conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
  -DCMAKE_PREFIX_PATH="$PREFIX" -DTUTTI_TESTS=OFF -DTUTTI_BLAS=openblas -DTUTTI_PLUGIN_CPU=ON -DTUTTI_PLUGIN_ONEDNN=ON -DTUTTI_PLUGIN_OPENCL=ON \
  -DTUTTI_PLUGIN_VULKAN=OFF -DTUTTI_PLUGIN_CUDA=OFF -DTUTTI_PLUGIN_MPI=OFF \
  -DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON
cmake --build build/conda --parallel "${CPU_COUNT:-1}"
cmake --install build/conda
rm -r build/conda  # rattler-build copies this folder for each package
