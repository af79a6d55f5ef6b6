// Whole files as text.
#pragma once
#include <string>

namespace tutti::data {

/// Throws Error(invalid) naming the path, with that remedy where there is no such file.
std::string read_file(const std::string& path, const std::string& remedy);

}  // namespace tutti::data
