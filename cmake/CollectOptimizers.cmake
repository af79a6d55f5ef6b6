# Writes OUT: includes FOLDER/*.h and makes the variant Optimizer of the structs that they declare ("struct TUTTI_API Name {"
# at the start of a line). Run as a script: -DFOLDER=… -DOUT=…
file(GLOB files "${FOLDER}/*.h")
list(SORT files)
set(includes "")
set(types "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  if(NOT text MATCHES "\nstruct TUTTI_API ([A-Za-z0-9]+) {")
    message(FATAL_ERROR "${file}: no optimizer reads \"struct TUTTI_API Name {\" at the start of a line")
  endif()
  string(APPEND includes "#include \"train/optimizers/${name}\"  // IWYU pragma: export\n")
  list(APPEND types "${CMAKE_MATCH_1}")
endforeach()
list(JOIN types ", " types)
file(CONFIGURE OUTPUT "${OUT}" CONTENT "// Collected by the build from train/optimizers/.
#pragma once
#include <variant>

${includes}
namespace tutti {

using Optimizer = std::variant<${types}>;

}  // namespace tutti
" @ONLY)  # keeps the old time when nothing changed
