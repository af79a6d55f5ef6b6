# Reads graph/ops/*.cpp and writes for each the header graph/ops/NAME.h (what stands between "// public" and "// end of
# public"), graph/ops.h, which includes them all, and ops_registry.cpp: the folder's files are the only list of ops. A file
# without a public block or a record fails the build, and so does a public function that libtutti would not export. Run as
# a script: -DFOLDER=… -DOUT=…
include("${CMAKE_CURRENT_LIST_DIR}/Collected.cmake")
file(GLOB files "${FOLDER}/*.cpp")
list(SORT files)
file(GLOB old "${OUT}/graph/ops/*.h")
foreach(header IN LISTS old)  # of ops that are gone
  get_filename_component(name "${header}" NAME_WE)
  if(NOT EXISTS "${FOLDER}/${name}.cpp")
    file(REMOVE "${header}")
  endif()
endforeach()
set(includes "")
set(pointers "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(FIND "${text}" "// public\n" begin)
  string(FIND "${text}" "// end of public\n" end)
  if(begin LESS 0 OR end LESS begin)
    message(FATAL_ERROR "${file}: an op's file declares its record and functions between the lines \"// public\" and "
                        "\"// end of public\"")
  endif()
  string(LENGTH "// public\n" skip)
  math(EXPR begin "${begin} + ${skip}")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${length} public)
  string(REGEX MATCHALL "\n[A-Za-z_][^\n(;{}]*\\(" functions "\n${public}")
  foreach(function IN LISTS functions)
    string(STRIP "${function}" function)
    if(NOT function MATCHES "^(inline|TUTTI_API|constexpr|using) ")
      message(FATAL_ERROR "${file}: the public \"${function}…)\" is neither inline nor TUTTI_API: libtutti would not export it")
    endif()
  endforeach()
  collected_records(records "${file}" "${text}" OpDef "[a-z0-9_]+_op")
  foreach(record IN LISTS records)
    string(FIND "${public}" "extern TUTTI_API const OpDef ${record};" declared)
    if(declared LESS 0)
      message(FATAL_ERROR "${file}: its public block lacks: extern TUTTI_API const OpDef ${record};")
    endif()
    string(APPEND pointers "      &${record},\n")
  endforeach()
  string(APPEND includes "#include \"graph/ops/${name}.h\"  // IWYU pragma: export\n")
  file(CONFIGURE OUTPUT "${OUT}/graph/ops/${name}.h" CONTENT "// The public block of graph/ops/${name}.cpp, collected by the build.
#pragma once
#include \"graph/op.h\"
#include \"graph/op_options.h\"

namespace tutti {

${public}
}  // namespace tutti
" @ONLY)  # keeps the old time when nothing changed
endforeach()
file(CONFIGURE OUTPUT "${OUT}/graph/ops.h" CONTENT "// Every op's public functions, collected from graph/ops/ by the build.
#pragma once
${includes}" @ONLY)
file(CONFIGURE OUTPUT "${OUT}/ops_registry.cpp" CONTENT "// Collected from graph/ops/ by the build.
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
" @ONLY)
