# An overlay port of this repository: vcpkg install tutti:x64-linux-dynamic --overlay-ports=scripts/packages/vcpkg
# tests/install/vcpkg_test.py runs it over stand-ins of vcpkg's functions; docs/PLATFORMS.md says what has not been run.
set(SOURCE_PATH "${CURRENT_PORT_DIR}/../../../..")
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES cpu TUTTI_PLUGIN_CPU opencl TUTTI_PLUGIN_OPENCL)
# ONNX files are off: CMake's own module does not link what protobuf needs since version 22.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DTUTTI_TESTS=OFF -DTUTTI_BLAS=openblas -DTUTTI_PLUGIN_ONEDNN=OFF -DTUTTI_PLUGIN_VULKAN=OFF -DTUTTI_PLUGIN_CUDA=OFF
          -DTUTTI_PLUGIN_MPI=OFF -DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/Tutti)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/bin")
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/tools/tutti")
file(RENAME "${CURRENT_PACKAGES_DIR}/bin/tutti-new-plugin" "${CURRENT_PACKAGES_DIR}/tools/tutti/tutti-new-plugin")
# The library alone: the command looks for plugins beside its folder, where vcpkg has no programs.
foreach(folder bin share/bash-completion share/fish share/man share/tutti/bench share/zsh)
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/${folder}")
endforeach()
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
