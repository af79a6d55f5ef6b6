# Writes OUT.cpp with the function FUNCTION() that lists the records of type TYPE ("const TYPE name{" at the start of a line)
# of FOLDER/*.cpp, in the order of their files. A file without a record fails the build. Run as a script:
# -DFOLDER=… -DTYPE=ModelDef -DNAMESPACE=tutti -DHEADER=train/model.h -DFUNCTION=all_models -DOUT=….cpp
file(GLOB files "${FOLDER}/*.cpp")
list(SORT files)
set(declared "")
set(listed "")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(REGEX MATCHALL "\nconst ${TYPE} [a-z0-9_]+ *{" records "${text}")
  if(NOT records)
    message(FATAL_ERROR "${file}: no record reads \"const ${TYPE} NAME{\" at the start of a line, as the build collects them")
  endif()
  foreach(record IN LISTS records)
    string(REGEX REPLACE "\nconst ${TYPE} ([a-z0-9_]+) *{" "\\1" record "${record}")
    string(APPEND declared "extern const ${TYPE} ${record};\n")
    string(APPEND listed "&${record}, ")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT "${OUT}" CONTENT "// Collected by the build from the folder of the records.
#include \"${HEADER}\"

namespace ${NAMESPACE} {

${declared}
std::span<const ${TYPE}* const> ${FUNCTION}() {
  static const ${TYPE}* const all[] = {${listed}};
  return all;
}

}  // namespace ${NAMESPACE}
" @ONLY)  # keeps the old time when nothing changed
