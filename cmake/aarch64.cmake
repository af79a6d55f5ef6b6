# Linux on ARM (preset aarch64): Debian's cross compiler, with the headers and libraries of .deps/sysroot-aarch64
# (scripts/platforms.sh). Programs run under qemu-user; they find their libraries there by RPATH, because qemu's own option -L
# would also redirect the paths that the engine opens.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
get_filename_component(CMAKE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../.deps/sysroot-aarch64" ABSOLUTE)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
set(library_folder "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu")
if(NOT SKBUILD)  # the folder's path would be part of a wheel's build IDs
  set(CMAKE_BUILD_RPATH "${library_folder};${library_folder}/openblas-pthread")
endif()
# Packages are unpacked, not installed: OpenBLAS is where Debian's alternatives would lead.
set(ENV{PKG_CONFIG_LIBDIR} "${library_folder}/openblas-pthread/pkgconfig:${library_folder}/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-Wl,--disable-new-dtags")
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
