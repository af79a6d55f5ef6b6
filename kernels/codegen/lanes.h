// Internal: vector loads and stores of adjacent elements, 16 bytes at a time if the language supports it.
#pragma once
#include <string>
#include <vector>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// Number of elements of this size in the widest load of the language: 16 bytes; in GLSL, which reads narrow elements
/// by words, four elements.
int64_t widest_lanes(const Target& t, size_t element_bytes);

/// Statements that load `lanes` adjacent elements of `p`, starting at element `at`, into variables that begin with
/// `name`. `lanes` is a multiple of 4 and divides `at`. Appends the expression of each element to `values`.
std::string load_lanes(const Target& t, const Param& p, const std::string& at, int64_t lanes, const std::string& name,
                       std::vector<std::string>& values);

/// Statements that store `values` starting at element `at`. Their number is a multiple of 4 and divides `at`.
std::string store_lanes(const Target& t, const Param& p, const std::string& at, const std::vector<std::string>& values);

}  // namespace tutti::codegen
