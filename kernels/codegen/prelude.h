// The dialect's words in each language.
#pragma once
#include "kernels/codegen/target.h"

namespace tutti::codegen {

/// Macros, types and functions that every text of the language begins with: FN, LID, BARRIER, F32, FLOAT4, …. What
/// depends on the kernel (IDX, LOCALS, the parameters' macros) is not among them.
const char* prelude(Language language);

/// What the macro SPLAT(s) stands for: a float16 of sixteen times s (OpenCL C and C++).
const char* splat16(Language language);

}  // namespace tutti::codegen
