#include "data/dataset.h"

#include <fmt/format.h>

#include <limits>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/source.h"

namespace tutti::data {
namespace {

const DataForm& form_of(const std::string& spec) {
  for (const DataForm* f : all_data_forms()) {
    bool whole = spec == f->name, parts = spec.starts_with(f->name + ":");
    if (f->fits ? parts && f->fits(spec) : whole) return *f;
  }
  throw invalid(fmt::format("unknown data '{}'", spec), use_one_of_the_forms());
}

}  // namespace

std::string use_one_of_the_forms() {
  std::vector<std::string> all;
  for (const DataForm* f : all_data_forms()) all.push_back(f->form);
  return "use " + alternatives(all);
}

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

Split parse_data(const std::string& spec) { return form_of(spec).open(spec); }

uint64_t made_up_bytes(const std::string& spec) {
  const DataForm& form = form_of(spec);
  return form.made_up_bytes ? form.made_up_bytes(spec) : 0;
}

}  // namespace tutti::data
