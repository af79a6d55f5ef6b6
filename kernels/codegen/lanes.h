// Inside of the dialect: neighbouring elements moved together, 16 bytes at a time where the language can.
#pragma once
#include <string>
#include <vector>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// How many neighbours of this size fill the widest load of the language: 16 bytes; in GLSL, whose narrow elements are
/// read by words, four elements.
int64_t widest_lanes(const Target& t, size_t element_bytes);

/// Statements that read `lanes` neighbours of `p` from element number `at` on, which `lanes` divides, into variables
/// beginning with `name`. `lanes`: a multiple of 4. Appends to `values` what stands for each neighbour.
std::string load_lanes(const Target& t, const Param& p, const std::string& at, int64_t lanes, const std::string& name,
                       std::vector<std::string>& values);

/// Statements that write `values`, a multiple of 4 of them, from element number `at` on, which their count divides.
std::string store_lanes(const Target& t, const Param& p, const std::string& at, const std::vector<std::string>& values);

}  // namespace tutti::codegen
