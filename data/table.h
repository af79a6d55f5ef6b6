// A table's columns: what they hold, and how a model reads them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/csv.h"

namespace tutti::data {

/// What a column's fields are.
enum class Content {
  numbers,
  dates,   ///< ISO 8601, read as days since 1970-01-01
  texts,   ///< categories
  labels,  ///< texts of which most occur once, such as names: nothing can be learned from them
};

/// What the column holds. Throws Error(invalid) naming the line for a few texts among numbers, and for numbers and
/// dates in an unsupported notation.
Content content_of(const Csv& csv, size_t column);
/// The field as a number: days for a date. None if it is neither.
std::optional<double> value_in(std::string_view field);

/// The encoding of a table, which a model keeps: in another file the columns are found by name.
struct TableCode {
  struct Numbers {
    std::string column;
    double mean = 0, deviation = 1;  ///< of the training rows; missing numbers are the mean
  };
  struct Texts {
    std::string column;
    std::vector<std::string> values;  ///< numbered from 1; 0: missing
  };
  std::vector<Numbers> numbers;
  std::vector<Texts> texts;
  std::string target;
  std::vector<std::string> labels;      ///< empty: the target is a real number
  bool numeric = false;                 ///< labels are numbers
  double mean = 0, deviation = 1;       ///< of a real target
  bool scaled = false;                  ///< models standardise a real target and the column "input"
  std::vector<std::string> notes = {};  ///< what was left out or decided, not kept

  std::string to_text() const;
};

/// Whether a data set's vocabulary is such a text.
bool is_table_code(const std::string& vocabulary);
/// Parses the text that a checkpoint keeps, which may be damaged. Throws Error(invalid).
TableCode table_code(const std::string& text);

/// What the user says of a table.
struct TableChoice {
  std::string target;  ///< "": the last column
  std::string kind;    ///< of the target: "real", "class" or "", as its values suggest
  std::vector<std::string> columns, drop;
  bool scaled = true;  ///< TableCode::scaled
};

/// Rows with a target.
std::vector<size_t> rows_with(const Csv& csv, const std::string& target);
/// The encoding of the file; statistics are those of the rows `train`. Throws Error(invalid).
TableCode learned_code(const Csv& csv, const TableChoice& choice, const std::vector<size_t>& rows,
                       const std::vector<size_t>& train);
/// Whether the target's label is written like this: numbers have the same form, however the file writes them.
std::string label_of(std::string_view text, bool numeric);

}  // namespace tutti::data
