// The GLSL that naga, wgpu's shader compiler, takes.
#pragma once
#include "sdk/driver.h"

/// GLSL without what naga lacks: `precise`, umulExtended, two views of one binding.
const tutti::sdk::Language& glsl_for_naga();
