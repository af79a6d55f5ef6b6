// Results that go into a file, whole or not at all, or to stdout.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"

namespace tutti::cli {

/// Adds `--json [FILE]` to a subcommand whose document may go into a file. `target`: the file, "-" for stdout (also
/// where none is named), "" where nobody asked. Errors are a JSON document only where the result would be one on
/// stdout.
CLI::Option* add_json_target(CLI::App& sub, std::string& target);

/// Finds out before the work what would fail after it. Throws Error(invalid) naming the option, the file and why.
void check_target(const char* option, const std::string& target);

/// A word of a command that a shell takes for what it is.
std::string shell_word(const std::string& word);
/// The same of a file's path, which must not look like an option.
std::string file_word(const std::string& path);

/// An option and the file that it names.
using Target = std::pair<const char*, const std::string*>;

/// The same for all of a command's outputs, and that no two of them go to one place.
void check_targets(std::span<const Target> targets);

/// Writes to the file, or to stdout for "-"; nothing for "". Throws Error(invalid).
void write_target(const std::string& target, std::string_view text);

/// The same after the work: where it cannot be written stderr says so, and the other outputs still come. Returns
/// whether it was.
bool try_write_target(const Target& target, std::string_view text);

}  // namespace tutti::cli
