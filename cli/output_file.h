// Writes results to stdout or atomically to a file.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cli/command.h"

namespace tutti::cli {

/// Adds `--json [FILE]` to a subcommand. `target`: the file; "-" for stdout (also if no file is given); "" without the
/// option. Errors are JSON documents only if the result would go to stdout.
CLI::Option* add_json_target(CLI::App& sub, std::string& target);

/// Checks before the work that the output can be written. Throws Error(invalid) that names the option, the file and the
/// reason.
void check_target(const char* option, const std::string& target);

/// Quotes a word for a shell.
std::string shell_word(const std::string& word);
/// The same for a file's path, which must not look like an option.
std::string file_word(const std::string& path);

/// An option and the file that it names.
using Target = std::pair<const char*, const std::string*>;

/// Checks all outputs of a command, and that no two of them are the same file or stdout.
void check_targets(std::span<const Target> targets);

/// Writes to the file, or to stdout for "-"; nothing for "". Throws Error(invalid).
void write_target(const std::string& target, std::string_view text);

/// Writes like write_target() but reports a failure on stderr, so that other outputs are still written. Returns whether
/// it succeeded.
bool try_write_target(const Target& target, std::string_view text);

}  // namespace tutti::cli
