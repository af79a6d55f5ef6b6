// Data sets in host memory: samples with integer class labels.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/base/status.h"
#include "data/host_tensor.h"
#include "data/source.h"
#include "data/tokenizer.h"

namespace tutti::data {

/// Samples and their labels: the columns "input" and "label". Fill one from your own tensors, or call one of the
/// functions below.
struct TUTTI_API Dataset : Source {
  HostTensor samples;           ///< [n, …]; u8 (programs scale it by 1/255) or f32 (used as it is); images are NCHW
  std::vector<int32_t> labels;  ///< n class indices in [0, classes)
  int64_t classes = 0;
  std::string labels_file = {};  ///< the file of the labels, for messages; "" if none
  size_t label_bytes = 0;        ///< bytes per label in that file

  int64_t size() const override { return static_cast<int64_t>(labels.size()); }
  bool parallel() const override { return true; }
  std::vector<Column> columns() const override;
  std::vector<Table> tables() const override;
  /// Type of one sample: u8[1, 28, 28].
  TensorType sample_type() const;
  /// Throws Error(invalid) unless the samples are u8 or f32, their first dimension is the number of labels, there is
  /// at least one sample and at most 2^31 - 1, and every label lies in [0, classes).
  void check() const override;
  /// Also names the file and byte, if known.
  void check_within(const std::string& column, const Limit& limit) const override;
};

struct TUTTI_API Split {
  Dataset train, test;
  /// Moves the tensors into sources.
  Sources sources() &&;
};

/// Tensors with one row per sample, as columns of any names, such as two inputs and a target.
class TUTTI_API TensorSet : public Source {
 public:
  /// Throws Error(invalid) if the numbers of rows differ. `classes`: number of classes of integer columns, by name.
  TensorSet(std::string name, std::vector<std::pair<std::string, HostTensor>> columns,
            std::map<std::string, int64_t> classes = {});
  /// Sets the statistics of a column: Column::mean and deviation.
  void standardise(const std::string& column, std::vector<double> mean, std::vector<double> deviation);
  int64_t size() const override { return rows_; }
  bool parallel() const override { return true; }
  std::vector<Column> columns() const override;
  std::vector<Table> tables() const override;

 private:
  std::vector<std::pair<std::string, HostTensor>> tensors_;
  std::map<std::string, int64_t> classes_;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> statistics_;
  int64_t rows_ = 0;
};

/// The given samples of a column, [samples, …]. Throws Error(invalid) for an unknown column.
TUTTI_API HostTensor read_samples(const Source& source, const std::string& column, std::span<const int32_t> samples);

/// The given samples of another source, in that order, with all columns.
TUTTI_API TensorSet subset(const Source& source, std::span<const int32_t> samples);

/// Options for opening data, besides the spec.
struct TUTTI_API OpenOptions {
  int64_t context = 0;  ///< tokens per sample of a text; 0: 256
  /// "bytes", "chars", "bpe:FOLDER" with GPT-2's vocab.json and merges.txt, or "gguf:FILE" with a tokenizer.
  std::string tokenizer = "chars";
  std::string vocabulary = {};  ///< Source::vocabulary of the data that a model was trained on; "": that of the file
  std::string test_data = {};   ///< the spec of the test set; "": a part of the data
  double test_fraction = 0;     ///< part of the samples that is split off for the test; 0: a tenth
  std::string columns = {}, drop = {};  ///< a table's columns to learn from, or to leave out, separated by commas
  std::string csv = {};                 ///< how a CSV file is written, such as "no-header,latin-1" (data/csv.h)
  /// Data without a test set of its own is not divided: all samples, in their order, are both training and test set.
  bool whole = false;
  bool labelled = true;  ///< false: labels and targets may be missing, and are 0 then
  bool scaled =
      true;  ///< real targets and numeric inputs of a table have Column::mean, so that models standardise them
};

/// The tokenizer named as in OpenOptions::tokenizer; `vocabulary` holds the characters of "chars". Throws
/// Error(invalid).
TUTTI_API std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name, const std::string& vocabulary);

/// Fashion-MNIST (60000 + 10000 grey images u8[1, 28, 28], 10 classes). Looks for the four IDX files in
/// $TUTTI_DATA_DIR/fashion-mnist, $TUTTI_DATA_DIR and the folder of Debian's package dataset-fashion-mnist. Throws
/// Error(invalid) listing the folders tried.
TUTTI_API Split fashion_mnist();

/// A folder in MNIST's layout: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte, each plain or .gz. Images [n, h, w] become [n, 1, h, w]; if `classes` is 0, it is the
/// largest training label + 1. Throws Error(invalid) naming file and byte.
TUTTI_API Split idx_folder(const std::string& folder, int64_t classes = 0);

/// Learnable synthetic data, bit-identical on every machine: sample = prototype of its class + noise, both uniform and
/// drawn by Philox. `shape` is that of one sample; f32; values lie in [-2, 2]. Test samples use the same prototypes.
TUTTI_API Split synthetic(const Shape& shape, int64_t classes, int64_t train = 8192, int64_t test = 2048,
                          uint64_t seed = 0);
/// Bytes of host memory of such data, at most 8 GiB. Throws Error(invalid) for more, and for arguments below 1.
TUTTI_API uint64_t synthetic_bytes(const Shape& shape, int64_t classes, int64_t train, int64_t test);

/// Opens a data set by its spec, such as "fashion-mnist", "idx:DIR", "synthetic:SHAPE:CLASSES[:TRAIN[:TEST]]" with
/// SHAPE like 1x28x28 or 1024, or "text:FILE" (all forms: data/sets). Throws Error(invalid) listing the forms, and for
/// options that have no effect on such data.
TUTTI_API Sources open_data(const std::string& spec, const OpenOptions& options = {});
/// Whether the option of OpenOptions has an effect on such data. Throws Error(invalid) for a bad spec.
TUTTI_API bool takes_context(const std::string& spec);
TUTTI_API bool takes_tokenizer(const std::string& spec);
/// The error that open_data would throw if the spec names a data set that must be installed separately and is missing.
/// Throws Error(invalid) for a bad spec.
TUTTI_API std::optional<Error> not_installed(const std::string& spec);
/// Bytes of host memory of data that is generated from the spec alone; 0 for data in files. Throws Error(invalid) like
/// open_data.
TUTTI_API uint64_t generated_bytes(const std::string& spec);

}  // namespace tutti::data
