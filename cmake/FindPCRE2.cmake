# PCRE2, the library of 8-bit code units: the target PCRE2::PCRE2. Debian's package has no CMake file of its own.
find_path(PCRE2_INCLUDE_DIR pcre2.h)
find_library(PCRE2_LIBRARY pcre2-8)
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  PCRE2 REQUIRED_VARS PCRE2_LIBRARY PCRE2_INCLUDE_DIR REASON_FAILURE_MESSAGE "apt install libpcre2-dev")
if(PCRE2_FOUND AND NOT TARGET PCRE2::PCRE2)
  add_library(PCRE2::PCRE2 UNKNOWN IMPORTED)
  set_target_properties(PCRE2::PCRE2 PROPERTIES IMPORTED_LOCATION "${PCRE2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                     "${PCRE2_INCLUDE_DIR}")
  if(WIN32 AND PCRE2_LIBRARY MATCHES "[^l]\\.a$")  # not an import library
    set_property(TARGET PCRE2::PCRE2 PROPERTY INTERFACE_COMPILE_DEFINITIONS PCRE2_STATIC)
  endif()
endif()
