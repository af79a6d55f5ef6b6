// Reads whole text files.
#pragma once
#include <string>

namespace tutti::data {

/// Throws Error(invalid) naming the path, with `remedy` if the file does not exist.
std::string read_file(const std::string& path, const std::string& remedy);

}  // namespace tutti::data
