# tutti_add_plugin(NAME SOURCES file… MANIFEST file [LIBS target…])
#
# Makes the plugin NAME: the module libtutti_NAME.so (Windows: tutti_NAME.dll) of those sources over Tutti::sdk, which exports tutti_plugin alone,
# and beside it NAME.json, the manifest with @PROJECT_VERSION@ and @TUTTI_PLUGIN_LIBRARY@ filled in. Both lie in
# TUTTI_PLUGIN_DIR (by default the folder `plugins` of the build tree) and are installed to TUTTI_PLUGIN_INSTALL_DIR
# (by default lib/tutti/plugins, where the engine looks). The sources see TUTTI_VERSION, the project's version.
include(GNUInstallDirs)

function(tutti_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MANIFEST" "SOURCES;LIBS")
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
    message(FATAL_ERROR "tutti_add_plugin: the name \"${name}\" must begin with a-z and hold a-z, 0-9 and _ alone")
  endif()
  if(NOT arg_SOURCES OR NOT arg_MANIFEST OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tutti_add_plugin(${name} SOURCES file… MANIFEST file [LIBS target…]): "
                        "something is missing or unknown: ${ARGN}")
  endif()
  get_filename_component(manifest "${arg_MANIFEST}" ABSOLUTE)
  file(READ "${manifest}" text)
  string(JSON named ERROR_VARIABLE error GET "${text}" name)
  if(error OR NOT named STREQUAL name)
    message(FATAL_ERROR "tutti_add_plugin: ${manifest} must be a JSON object whose \"name\" is \"${name}\" "
                        "(it is \"${named}\")")
  endif()
  if(NOT TUTTI_PLUGIN_DIR)
    set(TUTTI_PLUGIN_DIR "${CMAKE_BINARY_DIR}/plugins")
  endif()
  if(NOT TUTTI_PLUGIN_INSTALL_DIR)
    set(TUTTI_PLUGIN_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/tutti/plugins")
  endif()

  set(target tutti_${name})
  set(exports "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/TuttiPlugin.map")
  add_library(${target} MODULE ${arg_SOURCES})
  target_compile_definitions(${target} PRIVATE TUTTI_BUILDING_PLUGIN TUTTI_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${target} PRIVATE ${arg_LIBS} Tutti::sdk)
  set(prefix lib)
  set(suffix .so)
  if(WIN32)
    set(prefix "")
    set(suffix .dll)
  endif()
  set_target_properties(${target} PROPERTIES PREFIX "${prefix}" SUFFIX ${suffix} LIBRARY_OUTPUT_DIRECTORY "${TUTTI_PLUGIN_DIR}"
                        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${exports}")
  if(WIN32)  # the libraries' own marks stay, but no other library's symbols take their place
    target_sources(${target} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/TuttiPlugin.def")
  else()
    # The script also hides the statics of the archives, which keep their own visibility.
    target_link_options(${target} PRIVATE "-Wl,--version-script=${exports}")
  endif()
  if(NOT TUTTI_SANITIZE)  # the sanitizers' own symbols come from the executable
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set(TUTTI_PLUGIN_LIBRARY "${prefix}${target}${suffix}")
  # The engine looks for manifests: one lies beside its library from the build on, never alone.
  set(configured "${CMAKE_CURRENT_BINARY_DIR}/${name}.json")
  configure_file("${manifest}" "${configured}" @ONLY)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${configured}")
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
                     COMMAND ${CMAKE_COMMAND} -E copy "${configured}" "${TUTTI_PLUGIN_DIR}/${name}.json")
  if(NOT EXISTS "${TUTTI_PLUGIN_DIR}/${TUTTI_PLUGIN_LIBRARY}")
    file(REMOVE "${TUTTI_PLUGIN_DIR}/${name}.json")  # of an earlier version, which wrote it here
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION "${TUTTI_PLUGIN_INSTALL_DIR}" COMPONENT plugin_${name})
  install(FILES "${configured}" DESTINATION "${TUTTI_PLUGIN_INSTALL_DIR}" COMPONENT plugin_${name})
  set_property(GLOBAL APPEND PROPERTY TUTTI_PLUGINS ${target})
endfunction()
