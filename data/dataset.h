// Data sets: samples with integer class labels, whole in host memory.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti::data {

/// Samples and their labels. Fill one from your own tensors and call check(), or take one of the functions below.
struct TUTTI_API Dataset {
  std::string name;             ///< "fashion-mnist/train"
  HostTensor samples;           ///< [n, …]; u8 (programs scale it by 1/255) or f32 (taken as it is); images are NCHW
  std::vector<int32_t> labels;  ///< n class numbers in [0, classes)
  int64_t classes = 0;
  std::string labels_file = {};  ///< where the labels were read from, for messages; "" for none
  size_t label_bytes = 0;        ///< bytes of one label in that file

  /// Number of samples.
  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  /// Type of one sample: u8[1, 28, 28].
  TensorType sample_type() const;
  /// Throws Error(invalid) unless the samples are u8 or f32, their first dimension is the number of labels, there is
  /// at least one sample and at most 2^31 - 1, and every label lies in [0, classes).
  void check() const;
  /// Throws Error(invalid) naming the first label outside [0, limit), its sample and, if known, its file and byte.
  void check_labels(int64_t limit) const;
};

/// What a model is trained on and what it is judged by.
struct TUTTI_API Split {
  Dataset train, test;
};

/// Fashion-MNIST (60000 + 10000 grey images u8[1, 28, 28], 10 classes). Looks for the four IDX files in
/// $TUTTI_DATA_DIR/fashion-mnist, $TUTTI_DATA_DIR and the folder of Debian's package dataset-fashion-mnist. Throws
/// Error(invalid) listing the folders tried.
TUTTI_API Split fashion_mnist();

/// A folder in MNIST's layout: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
/// t10k-labels-idx1-ubyte, each plain or .gz. Images [n, h, w] become [n, 1, h, w]; the training labels tell the number
/// of classes (largest + 1) unless it is given. Throws Error(invalid) naming file and byte.
TUTTI_API Split idx_folder(const std::string& folder, int64_t classes = 0);

/// Learnable made-up data, the same bits on every machine: sample = prototype of its class + noise, both uniform and
/// drawn by Philox. `shape` is one sample's; f32; values lie in [-2, 2]. Test samples share the prototypes.
TUTTI_API Split synthetic(const Shape& shape, int64_t classes, int64_t train = 8192, int64_t test = 2048,
                          uint64_t seed = 0);
/// Bytes of host memory that it takes, at most 8 GiB. Throws Error(invalid) for more, and for numbers below 1.
TUTTI_API uint64_t synthetic_bytes(const Shape& shape, int64_t classes, int64_t train, int64_t test);

/// A data set by its spec: "fashion-mnist", "idx:DIR" or "synthetic:SHAPE:CLASSES[:TRAIN[:TEST]]" with SHAPE like
/// 1x28x28 or 1024. Throws Error(invalid) that lists these forms.
TUTTI_API Split parse_data(const std::string& spec);
/// Bytes of host memory that the spec alone makes up; 0 where files tell. Throws Error(invalid) as parse_data does.
TUTTI_API uint64_t made_up_bytes(const std::string& spec);

}  // namespace tutti::data
