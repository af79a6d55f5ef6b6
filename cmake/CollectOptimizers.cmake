# Writes OUT: includes FOLDER/*.h and makes BuiltInOptimizers of the structs that they declare ("struct TUTTI_API Name {"
# at the start of a line; any other struct or class fails the build). Run as a script: -DFOLDER=… -DOUT=…
include("${CMAKE_CURRENT_LIST_DIR}/Collected.cmake")
file(GLOB files "${FOLDER}/*.h")
list(SORT files)
set(includes "")
set(types "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  collected(structs "${file}" "${text}" "\nstruct TUTTI_API ([A-Za-z0-9]+) {" "\n(struct|class)[ \n][^;{]*{"
            "struct TUTTI_API Name {")
  string(APPEND includes "#include \"train/optimizers/${name}\"  // IWYU pragma: export\n")
  list(APPEND types ${structs})
endforeach()
list(JOIN types ", " types)
file(CONFIGURE OUTPUT "${OUT}" CONTENT "// Collected by the build from train/optimizers/.
#pragma once
#include <tuple>

${includes}
namespace tutti {

using BuiltInOptimizers = std::tuple<${types}>;

}  // namespace tutti
" @ONLY)  # keeps the old time when nothing changed
