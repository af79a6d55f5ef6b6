# Reads graph/ops/*.cpp and writes graph/ops.h (records and the lines marked "//: ") and ops_registry.cpp, so that the
# folder's files are the only list of ops. Run as a script: -DFOLDER=… -DOUT=…
file(GLOB files "${FOLDER}/*.cpp")
list(SORT files)
set(records "")
set(functions "")
set(pointers "")
foreach(file IN LISTS files)
  file(READ "${file}" text)
  string(REPLACE ";" "<semicolon>" text "${text}")
  string(REPLACE "[" "<open>" text "${text}")
  string(REPLACE "]" "<close>" text "${text}")
  string(REPLACE "\n" ";" lines "${text}")
  foreach(line IN LISTS lines)
    if(line MATCHES "^const OpDef ([a-z0-9_]+)_op{")
      string(APPEND records "extern const OpDef ${CMAKE_MATCH_1}_op;\n")
      string(APPEND pointers "      &${CMAKE_MATCH_1}_op,\n")
    elseif(line MATCHES "^//: ?(.*)$")
      string(APPEND functions "${CMAKE_MATCH_1}\n")
    endif()
  endforeach()
endforeach()
foreach(name records functions pointers)
  string(REPLACE "<semicolon>" ";" ${name} "${${name}}")
  string(REPLACE "<open>" "[" ${name} "${${name}}")
  string(REPLACE "<close>" "]" ${name} "${${name}}")
endforeach()
file(WRITE "${OUT}/graph/ops.h.new" "// Collected from graph/ops/ by the build: the records and public functions of every op.
#pragma once
#include \"graph/op.h\"

namespace tutti {

${records}
${functions}
}  // namespace tutti
")
file(WRITE "${OUT}/ops_registry.cpp.new" "// Collected from graph/ops/ by the build.
#include <algorithm>

#include \"graph/ops.h\"

namespace tutti {

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> ops = [] {
    std::vector<const OpDef*> list = {
${pointers}    };
    std::sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->name < b->name; });
    return list;
  }();
  return ops;
}

}  // namespace tutti
")
foreach(name graph/ops.h ops_registry.cpp)
  configure_file("${OUT}/${name}.new" "${OUT}/${name}" COPYONLY)  # keeps the old time when nothing changed
  file(REMOVE "${OUT}/${name}.new")
endforeach()
