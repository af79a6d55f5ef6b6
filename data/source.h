// Where the columns of a batch come from: named columns over samples, read by number.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/base/limit.h"
#include "core/base/shape.h"
#include "core/base/status.h"

namespace tutti::data {

/// A tensor in host memory that columns are cut from, and that a device may hold whole.
struct TUTTI_API Table {
  std::string name;
  TensorType type;        ///< [rows, …]
  const std::byte* data;  ///< row-major; the source owns it
};

/// One column. Sample i of a column of rows is row `offset + i * stride` of its table; of a column of windows it is
/// the type.shape[0] rows from there on.
struct TUTTI_API Column {
  std::string name;   ///< what a task asks a batch for: "input", "label", "tokens"
  TensorType type;    ///< of one sample
  std::string table;  ///< "": the source has none for it, and read() makes the samples
  bool window = false;
  int64_t stride = 1, offset = 0;
  int64_t classes = 0;  ///< of integers: they lie in [0, classes); 0: not known
  bool operator==(const Column&) const = default;
};

/// Samples of named columns. A data set of one's own derives from it: with tables, which read() and devices cut samples
/// from, or with read() alone.
class TUTTI_API Source {
 public:
  std::string name;  ///< "fashion-mnist/train": for messages, and part of the names of states on devices
  /// What the numbers in it stand for, where they were given in the order of what a file holds: the characters of a
  /// text, the categories of a table. OpenOptions::vocabulary takes it, so that another file gets the same numbers.
  std::string vocabulary = {};

  virtual ~Source() = default;
  /// Number of samples.
  virtual int64_t size() const = 0;
  virtual std::vector<Column> columns() const = 0;
  virtual std::vector<Table> tables() const { return {}; }
  /// Writes the column's samples of those numbers, one after the other. Throws Error for an unknown column.
  virtual void read(const std::string& column, std::span<const int32_t> samples, void* to) const;
  /// Whether many threads may call read() at once; else the thread that trains reads.
  virtual bool parallel() const { return false; }
  /// Throws Error(invalid) unless there is at least one sample and at most 2^31 - 1, and every column fits its table.
  virtual void check() const;
  /// Throws Error(invalid) naming the first sample of an i32 column with a number outside the limit.
  virtual void check_within(const std::string& column, const Limit& limit) const;

  /// Throws Error(invalid) that lists the columns there are.
  Column column(const std::string& name) const;
  /// Bytes of all tables.
  uint64_t table_bytes() const;

 protected:
  Source() = default;
  explicit Source(std::string name) : name(std::move(name)) {}
  Source(const Source&) = default;
  Source(Source&&) = default;
  Source& operator=(const Source&) = default;
  Source& operator=(Source&&) = default;
};

/// What check_within throws for the number x at `place` ("data set cats: label") in that sample.
TUTTI_API Error outside(const std::string& place, int64_t x, int64_t sample, const Limit& limit);

/// The names of the classes where a vocabulary is the list of them that a folder of images keeps; else none.
TUTTI_API std::vector<std::string> classes_in(const std::string& vocabulary);

/// What a model is trained on and what it is judged by.
struct TUTTI_API Sources {
  std::shared_ptr<const Source> train, test;
};

}  // namespace tutti::data
