# Writes OUT.cpp with the function FUNCTION() that lists the records of type TYPE ("const TYPE name{" at the start of a line)
# of FOLDER/*.cpp, in the order of their files. A file without a record, or with one that reads otherwise, fails the build.
# Run as a script: -DFOLDER=… -DTYPE=ModelDef -DNAMESPACE=tutti -DHEADER=train/task/model.h -DFUNCTION=all_models -DOUT=….cpp
include("${CMAKE_CURRENT_LIST_DIR}/Collected.cmake")
file(GLOB files "${FOLDER}/*.cpp")
list(SORT files)
set(declared "")
set(listed "")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  collected_records(records "${file}" "${text}" ${TYPE} "[a-z0-9_]+")
  foreach(record IN LISTS records)
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
