// The results of finished runs, as `tutti train --json` prints them, read again.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace tutti::cli {

/// A run's document, and the name under which it is shown.
struct RunRecord {
  std::string name;
  nlohmann::ordered_json result;
  /// A number of the document ("step_ms_median") or of its metrics; none if it is missing.
  std::optional<double> number(const std::string& key) const;
  /// An option of the run as text; "" if the document has none of that name.
  std::string option(const std::string& key) const;
};

/// Reads a file with a document of `tutti train --json`, or the run.json in a folder of --log-dir. Throws
/// Error(invalid).
RunRecord read_record(const std::string& path);

/// The options, without paths of output, in which the runs differ.
std::vector<std::string> differing_options(const std::vector<RunRecord>& runs);

/// Sorts by a number: metrics such as accuracy descending, losses and times ascending. Throws Error(invalid) if no run
/// has it.
void sort_by(std::vector<RunRecord>& runs, const std::string& key);

/// A table of the runs: a row of headings, then a row per run.
std::vector<std::vector<std::string>> rows_of(const std::vector<RunRecord>& runs);
/// The table for the terminal.
std::string table_of(const std::vector<RunRecord>& runs);
/// The same as a JSON document.
nlohmann::ordered_json document_of(const std::vector<RunRecord>& runs);
/// The same as a self-contained HTML page with curves.
std::string page_of(const std::vector<RunRecord>& runs);

}  // namespace tutti::cli
