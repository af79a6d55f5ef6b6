// Help texts, man pages and shell completion, all made from the options that subcommands declare.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"

namespace tutti::cli {

/// Prints help in 100 columns: `--help` shows the options that most runs use, `--help-all` every option.
std::shared_ptr<CLI::FormatterBase> help_formatter();
/// Shows that option, such as "epochs", of the subcommand in `--help-all` only.
void rarely_used(const CLI::App& sub, const std::string& option);
/// The value that help texts show after the option's name, such as "5" for `--epochs 5`.
void with_example(const CLI::App& sub, const std::string& option, const std::string& value);

/// The text, broken into lines of 100 columns; all but the first are indented.
std::string wrapped(const std::string& text, size_t indent);
/// The subcommand's page for man(1), in roff.
std::string man_page(const CLI::App& sub);
/// What may stand at word `at` of a command line, each starting with what is typed there. Empty: a file.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words, size_t at);

}  // namespace tutti::cli
