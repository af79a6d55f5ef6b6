# collected(OUT FILE TEXT PROPER ANYHOW READS): the names that PROPER captures in TEXT, a list. ANYHOW matches every spelling:
# what reads otherwise than READS, and a file with nothing, is an error. Both expressions begin with a newline.
function(collected out file text proper anyhow reads)
  string(REGEX MATCHALL "${proper}" found "\n${text}")
  string(REGEX MATCHALL "${anyhow}" all "\n${text}")
  list(LENGTH found records)
  list(LENGTH all spelled)
  if(records EQUAL 0 OR NOT records EQUAL spelled)
    message(FATAL_ERROR "${file}: ${spelled} records, of which ${records} read \"${reads}\" at the start of a line, as the "
                        "build collects them")
  endif()
  list(TRANSFORM found REPLACE "${proper}" "\\1")
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Records of C++ type TYPE: "const TYPE NAME{", where NAME matches an expression.
function(collected_records out file text type name)
  collected(names "${file}" "${text}" "\nconst ${type} (${name}) *{"
            "${type}[ \n]+[A-Za-z0-9_]+[ \n]*[{=]|[^A-Za-z0-9_]${type}[ \n]*{" "const ${type} NAME{")
  set(${out} "${names}" PARENT_SCOPE)
endfunction()
