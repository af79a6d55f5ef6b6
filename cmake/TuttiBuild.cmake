# Compiler settings that every target shares, and the layout of the build tree (the same as installed: bin, lib,
# lib/tutti/plugins).
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)  # libtutti exports what core/base/export.h marks
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
# Programs find lib beside their own folder, so that a build tree can be moved, and parts of it packed.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
set(TUTTI_PLUGIN_DIR "${PROJECT_BINARY_DIR}/lib/tutti/plugins")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers -Wno-restrict -fno-math-errno -ffp-contract=off)
if(WIN32)
  # Windows 10, by UTF-16 names alone; without the headers' macros min and max.
  add_compile_definitions(_WIN32_WINNT=0x0A00 UNICODE NOMINMAX WIN32_LEAN_AND_MEAN)
  # GCC places 32-byte vectors on the stack where the ABI aligns to 16 bytes alone: the assembler makes their moves unaligned.
  add_compile_options(-Wa,-mbig-obj,-muse-unaligned-vector-move)
endif()
if(TUTTI_SANITIZE)
  add_compile_options(-fsanitize=${TUTTI_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TUTTI_SANITIZE})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Build trees share what they compile: paths count from the root, where every tree lies at build/NAME.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PCRE2 REQUIRED)
find_package(Boost 1.74 REQUIRED)
# What reads folders of images; without one of them such files are an error that names it.
find_package(PNG)
find_package(JPEG)
foreach(library PNG JPEG)
  if(NOT ${library}_FOUND)
    string(TOLOWER "lib${library}-dev" package)
    message(STATUS "No ${library} files in --data images:DIR (Debian: apt install ${package})")
  endif()
endforeach()

# Unicode normalization of tokenizer.json; without it tokenizers that normalize are an error that names it.
find_package(ICU COMPONENTS uc)
if(NOT ICU_FOUND)
  message(STATUS "No tokenizers with Unicode normalization (Debian: apt install libicu-dev)")
endif()

option(TUTTI_UNITY "Compile the sources of a folder together, ten at a time, which takes about half the time for them" ON)

# Most of what a compiler reads are headers, so the sources of a target are compiled together, by folder: names in the anonymous
# namespaces of a folder must differ. Not in registries (0015): each file is an entry, and has the names of all others.
function(tutti_compile_together target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    if(NOT IS_ABSOLUTE "${source}" OR folder MATCHES "/(ops|sets|transforms|models|optimizers|families|kinds|nn)$"
       OR source MATCHES "/all_[a-z_]*.cpp$")
      continue()
    endif()
    file(RELATIVE_PATH group "${PROJECT_SOURCE_DIR}" "${folder}")
    string(MAKE_C_IDENTIFIER "${group}" group)
    math(EXPR number "${count_${group}} + 0")
    math(EXPR part "${number} / 10")
    math(EXPR count_${group} "${number} + 1")
    set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${group}_${part}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TUTTI_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

# A static library of the engine or of what plugins link; its headers are found from the repository's root.
function(tutti_library name)
  add_library(${name} STATIC ${ARGN})
  target_include_directories(${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  if(WIN32)
    target_compile_definitions(${name} PRIVATE TUTTI_BUILDING_ENGINE)  # core/base/export.h
  endif()
endfunction()
