// CSV files as rows of fields.
//
// The format is RFC 4180: a quoted field may contain separators, line ends and doubled quotes; the first line names the
// columns. Blanks around unquoted fields and empty lines are ignored. The separator is found in the first lines; gzip
// is recognised; the text is UTF-8. CsvFormat describes other files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tutti::data {

/// How a file is written, as the user says.
struct CsvFormat {
  char separator = 0;  ///< 0: found in the file
  bool header = true;
  std::string comment;  ///< lines that begin with it are left out; "": none
  bool latin_1 = false;
};

/// "separator:tab, comma, semicolon, bar, space or a character; …", for help texts.
extern const char* const csv_format_doc;
/// Parses "no-header,separator:tab,comment:#,latin-1". Throws Error(invalid).
CsvFormat parse_csv_format(const std::string& text);

/// The rows of a file, as views of its text.
class Csv {
 public:
  /// Throws Error(invalid) naming file and line.
  Csv(std::string path, const CsvFormat& format);
  Csv(const Csv&) = delete;
  Csv& operator=(const Csv&) = delete;
  const std::string& path() const { return path_; }
  /// Names of the columns; "column 3" for one without a name.
  const std::vector<std::string>& header() const { return header_; }
  /// Whether the header has no name for the column.
  bool unnamed(size_t column) const { return unnamed_[column]; }
  size_t rows() const { return lines_.size(); }
  std::string_view at(size_t row, size_t column) const { return fields_[row * header_.size() + column]; }
  /// "FILE, line 7, column 'age'".
  std::string place(size_t row, size_t column) const;
  /// The column of that name. Throws Error(invalid) listing the columns; `why` ends the message.
  size_t column_named(const std::string& name, const char* why = "") const;
  std::optional<size_t> find_column(const std::string& name) const;

 private:
  void read_header();
  /// The fields of the next row that is neither empty nor a comment; empty at the end of the text.
  std::vector<std::string_view> next_row();
  std::string_view next_field(size_t number);
  Error error(int64_t line, const std::string& message, const std::string& remedy) const;
  std::string path_, text_;
  CsvFormat format_;
  size_t at_ = 0;
  int64_t line_ = 1, row_line_ = 1;
  std::vector<std::string> header_;
  std::vector<bool> unnamed_;
  std::vector<std::string_view> fields_;
  std::vector<int64_t> lines_;
};

/// A field as a number written like -1234.5; none if it is not one, or does not fit f32.
std::optional<double> number_in(std::string_view field);
/// Whether a field marks a missing value: empty, "?", "NA", "N/A", "NaN", "nan", "null" or "NULL".
bool is_missing(std::string_view field);

}  // namespace tutti::data
