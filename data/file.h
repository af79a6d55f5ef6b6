// Reads whole files.
#pragma once
#include <string>

namespace tutti::data {

/// Throws Error(invalid) naming the path, with `remedy` if the file does not exist.
std::string read_file(const std::string& path, const std::string& remedy);
/// The bytes themselves, or what they hold if they are a gzip stream. Throws Error(invalid) naming the path.
std::string unpacked(std::string bytes, const std::string& path);

}  // namespace tutti::data
