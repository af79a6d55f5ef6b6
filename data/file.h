// Reads whole files.
#pragma once
#include <cstdint>
#include <string>

namespace tutti::data {

/// The size of a regular file. Throws Error(invalid) naming the path, with `remedy`, if there is none.
uint64_t expect_file(const std::string& path, const std::string& remedy);
/// Throws Error(invalid) naming the path, with `remedy` if the file does not exist.
std::string read_file(const std::string& path, const std::string& remedy);

}  // namespace tutti::data
