// Reads the files that make_golden.py wrote (its docstring describes them) and compares tensors with them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "graph/op.h"

namespace tutti::golden {

/// The document NAME of the folder golden_data beside the program. Throws Error naming the file when it is missing or
/// no JSON.
nlohmann::json read(const std::string& name);
/// The names of all files there, sorted.
std::vector<std::string> files();
Tensor to_tensor(const nlohmann::json& t);
Attrs to_attrs(const nlohmann::json& a);

/// "" when `got` has the type of `want` and every element is within `tolerance` times max(|want|, 1e-3 of the largest
/// element): else the first element that is not. NaN equals NaN alone.
std::string difference(const Tensor& got, const Tensor& want, double tolerance);

}  // namespace tutti::golden
