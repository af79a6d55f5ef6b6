# cmake -DOUTPUT=… -DTEXTS=a.k;b.k -P Embed.cmake: writes a C++ file that holds the kernel texts.
set(all "#include \"kernels/codegen/texts.h\"\n\nnamespace tutti::codegen {\n\nconst Text texts[] = {\n")
foreach(path IN LISTS TEXTS)
  file(READ "${path}" text)
  get_filename_component(name "${path}" NAME_WE)
  string(APPEND all "{\"${name}\", R\"__k__(${text})__k__\"},\n")
endforeach()
string(APPEND all "{nullptr, nullptr}};\n\n}  // namespace tutti::codegen\n")
file(WRITE "${OUTPUT}" "${all}")
