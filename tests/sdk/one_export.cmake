# Fails unless LIBRARY exports tutti_plugin and nothing else.
execute_process(COMMAND "${NM}" -D --defined-only "${LIBRARY}" OUTPUT_VARIABLE text RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${NM} cannot read ${LIBRARY}")
endif()
string(STRIP "${text}" text)
if(NOT text MATCHES "^[0-9a-f]+ T tutti_plugin$")
  message(FATAL_ERROR "${LIBRARY} must export tutti_plugin alone, but exports:\n${text}")
endif()
