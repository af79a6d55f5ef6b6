# tutti_backend_option(NAME) adds the option TUTTI_PLUGIN_NAME: AUTO builds the plugin where what it needs is found, ON
# fails where it is not, OFF leaves it out. It returns from the calling file where the plugin is OFF.
# tutti_backend_off(NAME REASON) leaves the calling file because something is missing.
macro(tutti_backend_option name)
  string(TOUPPER "TUTTI_PLUGIN_${name}" option)
  set(${option} AUTO CACHE STRING "Build the ${name} plugin: AUTO, ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  if(NOT ${option} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "${option} is \"${${option}}\"; AUTO, ON or OFF is needed")
  endif()
  if(${option} STREQUAL "OFF")
    message(STATUS "${name} plugin: off, because ${option} is OFF")
    return()
  endif()
endmacro()

macro(tutti_backend_off name reason)
  string(TOUPPER "TUTTI_PLUGIN_${name}" option)
  if(${option} STREQUAL "ON")
    message(FATAL_ERROR "${name} plugin: ${option} is ON, but ${reason}")
  endif()
  message(STATUS "${name} plugin: off, because ${reason}")
  return()
endmacro()
