// The GLSL dialect of naga, wgpu's shader compiler.
#pragma once
#include "sdk/driver.h"

/// GLSL without features that naga lacks: `precise`, umulExtended, two views of one binding.
const tutti::sdk::Language& glsl_for_naga();
