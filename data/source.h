// Sources of batches: named columns over samples, read by sample index.
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

/// A tensor in host memory with the data of columns; devices may hold a copy of all of it.
struct TUTTI_API Table {
  std::string name;
  TensorType type;        ///< [rows, …]
  const std::byte* data;  ///< row-major; the source owns it
};

/// One column. Sample i is row `offset + i * stride` of its table; if `window`, the type.shape[0] rows that start
/// there.
struct TUTTI_API Column {
  std::string name;   ///< the name used by tasks: "input", "label", "tokens"
  TensorType type;    ///< of one sample
  std::string table;  ///< "": there is no table, and read() produces the samples
  bool window = false;
  int64_t stride = 1, offset = 0;
  int64_t classes = 0;  ///< of integers: they lie in [0, classes); 0: unknown
  /// Of real numbers that a model standardises, one per element of a sample: (x - mean) / deviation. Empty: none.
  std::vector<double> mean = {}, deviation = {};
  bool operator==(const Column&) const = default;
};

/// Samples of named columns. Derive from it for your own data set: either with tables, from which read() and devices
/// copy samples, or by overriding read().
class TUTTI_API Source {
 public:
  std::string name;  ///< "fashion-mnist/train": for messages, and in the names of device states
  /// The meaning of its integers if they number values found in a file: the characters of a text, the categories of a
  /// table. Pass it in OpenOptions::vocabulary to get the same numbering for another file.
  std::string vocabulary = {};
  /// What opening the data left out or decided, as sentences for users.
  std::vector<std::string> notes = {};

  virtual ~Source() = default;
  /// Number of samples.
  virtual int64_t size() const = 0;
  virtual std::vector<Column> columns() const = 0;
  virtual std::vector<Table> tables() const { return {}; }
  /// Copies the given samples of the column to `to`, contiguously. Throws Error for an unknown column.
  virtual void read(const std::string& column, std::span<const int32_t> samples, void* to) const;
  /// What a sample is called, for example its file; "": it has only a number.
  virtual std::string sample_name(int64_t) const { return {}; }
  /// Whether several threads may call read() at once; if not, only the training thread reads.
  virtual bool parallel() const { return false; }
  /// Throws Error(invalid) unless there is at least one sample and at most 2^31 - 1, and every column fits its table.
  virtual void check() const;
  /// Throws Error(invalid) naming the first sample of an i32 column with an integer outside the limit.
  virtual void check_within(const std::string& column, const Limit& limit) const;

  /// Throws Error(invalid) listing the columns for an unknown name.
  Column column(const std::string& name) const;
  /// Bytes of all tables.
  uint64_t table_bytes() const;
  /// Another number for every source of a process, also where one lies in the memory of an earlier one; assignment
  /// changes it. Tells whether a device still has the source's tables.
  uint64_t identity() const { return identity_.number; }

 protected:
  Source() = default;
  explicit Source(std::string called) : name(std::move(called)) {}
  Source(const Source&) = default;
  Source(Source&&) = default;
  Source& operator=(const Source&) = default;
  Source& operator=(Source&&) = default;

 private:
  struct TUTTI_API Identity {
    Identity() = default;
    Identity(const Identity&) {}
    Identity& operator=(const Identity& other) {
      if (this != &other) number = next();
      return *this;
    }
    static uint64_t next();
    uint64_t number = next();
  };
  Identity identity_;
};

/// The error of check_within for the integer x of that sample at `place` ("data set cats: label").
TUTTI_API Error outside(const std::string& place, int64_t x, int64_t sample, const Limit& limit);

/// A hash of some samples, spread over the set.
TUTTI_API std::string fingerprint(const Source& set);

/// The class names in the vocabulary of a folder of images or of a table; otherwise empty.
TUTTI_API std::vector<std::string> classes_in(const std::string& vocabulary);

/// The sources for training and evaluation.
struct TUTTI_API Sources {
  std::shared_ptr<const Source> train, test;
};

}  // namespace tutti::data
