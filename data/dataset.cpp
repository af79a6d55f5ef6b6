#include "data/dataset.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "core/base/status.h"

namespace tutti::data {
namespace {

const char* const forms =
    "use fashion-mnist, idx:DIR (a folder in MNIST's layout) or synthetic:SHAPE:CLASSES[:TRAIN[:TEST]], for example "
    "synthetic:1x28x28:10 or synthetic:1024:10:4096:512";

std::vector<std::string> cut(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

int64_t positive(const std::string& spec, const std::string& text, const char* what) {
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1)
    throw invalid(fmt::format("data '{}': '{}' is no {} (a whole number from 1)", spec, text, what), forms);
  return n;
}

struct Synthetic {
  Shape shape;
  int64_t classes = 0, train = 0, test = 0;
};

Synthetic parse_synthetic(const std::string& spec) {
  auto parts = cut(spec, ':');
  if (parts.size() < 3 || parts.size() > 5)
    throw invalid(fmt::format("data '{}': expected 3 to 5 parts between colons, found {}", spec, parts.size()), forms);
  Synthetic s;
  for (const auto& d : cut(parts[1], 'x')) s.shape.push_back(positive(spec, d, "dimension"));
  s.classes = positive(spec, parts[2], "number of classes");
  s.train = parts.size() > 3 ? positive(spec, parts[3], "number of training samples") : 8192;
  s.test = parts.size() > 4   ? positive(spec, parts[4], "number of test samples")
           : parts.size() > 3 ? std::max<int64_t>(s.train / 4, 1)
                              : 2048;
  return s;
}

bool is_synthetic(const std::string& spec) { return spec.starts_with("synthetic:"); }

}  // namespace

TensorType Dataset::sample_type() const {
  const Shape& s = samples.type.shape;
  return {samples.type.dtype, s.empty() ? Shape{} : Shape(s.begin() + 1, s.end())};
}

void Dataset::check() const {
  const TensorType& t = samples.type;
  if (t.dtype != DType::u8 && t.dtype != DType::f32)
    throw invalid(fmt::format("data set {}: samples are {}, expected u8 or f32", name, to_string(t)));
  if (labels.empty()) throw invalid(fmt::format("data set {} holds no sample", name));
  if (t.shape.empty() || t.shape[0] != size())
    throw invalid(fmt::format("data set {}: samples {} do not fit {} labels", name, to_string(t), labels.size()),
                  "the first dimension of the samples is the number of labels");
  if (size() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("data set {}: {} samples, at most 2^31 - 1 can be indexed", name, size()));
  if (samples.bytes.size() != num_bytes(t))
    throw invalid(fmt::format("data set {}: samples {} take {} bytes, {} are there", name, to_string(t), num_bytes(t),
                              samples.bytes.size()));
  if (classes < 1) throw invalid(fmt::format("data set {}: {} classes, expected at least one", name, classes));
  check_labels(classes);
}

void Dataset::check_labels(int64_t limit) const {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && labels[i] < limit) continue;
    // A rank-1 IDX file has a header of 8 bytes.
    std::string place = labels_file.empty() ? fmt::format("data set {}", name)
                                            : fmt::format("{}, byte {}", labels_file, 8 + i * label_bytes);
    throw invalid(fmt::format("{}: label {} of sample {} is outside [0, {})", place, labels[i], i, limit),
                  "labels count from 0; check the file, or give the model as many outputs as there are classes");
  }
}

Split parse_data(const std::string& spec) {
  if (spec == "fashion-mnist") return fashion_mnist();
  if (spec.starts_with("idx:") && spec.size() > 4) return idx_folder(spec.substr(4));
  if (is_synthetic(spec)) {
    Synthetic s = parse_synthetic(spec);
    return synthetic(s.shape, s.classes, s.train, s.test);
  }
  throw invalid(fmt::format("unknown data '{}'", spec), forms);
}

uint64_t made_up_bytes(const std::string& spec) {
  if (!is_synthetic(spec)) return 0;
  Synthetic s = parse_synthetic(spec);
  return synthetic_bytes(s.shape, s.classes, s.train, s.test);
}

}  // namespace tutti::data
