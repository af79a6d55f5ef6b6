// The texts of kernels/portable, embedded by the build.
#pragma once

namespace tutti::codegen {

struct Text {
  const char *name, *text;
};
/// Ends with a null name.
extern const Text texts[];

}  // namespace tutti::codegen
