// The reference of all ops, generated from their records.
#pragma once
#include <string>

namespace tutti {

/// The text of docs/OPS.md: per op its formula, inputs, results, attributes, how its value is defined, its gradient.
std::string ops_markdown();

}  // namespace tutti
