# Before CPack makes packages: man pages are compressed, and libraries that come from elsewhere are stripped.
file(GLOB_RECURSE pages "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*.1")
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9n "${page}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB_RECURSE libraries "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/libdnnl.so*")
foreach(library IN LISTS libraries)
  execute_process(COMMAND strip --strip-unneeded "${library}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
