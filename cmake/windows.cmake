# Windows on x86-64 (preset windows): Debian's mingw-w64 with POSIX threads, with the headers and libraries of
# .deps/sysroot-windows (scripts/platforms.sh). Programs run under Wine. What GCC's runtime consists of is linked statically: a
# program needs no file beside it.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
get_filename_component(TUTTI_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../.deps/sysroot-windows" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${TUTTI_SYSROOT}/usr" /usr/x86_64-w64-mingw32)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-static")
endforeach()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${TUTTI_SYSROOT}/usr/lib/pkgconfig")
# The static zlib; libraries that nobody has for this platform.
set(ZLIB_LIBRARY /usr/x86_64-w64-mingw32/lib/libz.a CACHE FILEPATH "")
foreach(option TUTTI_BLAS TUTTI_PLUGIN_ONEDNN TUTTI_PLUGIN_CUDA TUTTI_PLUGIN_MPI)
  set(${option} OFF CACHE BOOL "")
endforeach()
