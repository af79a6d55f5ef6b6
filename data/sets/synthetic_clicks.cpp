// Learnable synthetic clicks: dense features, bags of table rows, and a label computed by a linear rule.
#include <algorithm>

#include "data/form.h"
#include "data/synthetic.h"

namespace tutti::data {
namespace {

enum Stream : uint32_t { dense = 0x64617420, sparse, weights, worths };

constexpr int64_t bag = 4;  // rows of a table per sample

struct Spec {
  int64_t dense, tables, rows, train, test;
};

Spec parse(const std::string& spec) {
  std::vector<int64_t> n = spec_numbers(spec, {{.name = "DENSE", .most = 4096},
                                               {.name = "TABLES", .most = 1024},
                                               {.name = "ROWS"},
                                               {.name = "SAMPLES", .otherwise = 8192}});
  return {n[0], n[1], n[2], n[3], std::max<int64_t>(n[3] / 4, 1)};
}

uint64_t bytes_of(const Spec& s) {
  return static_cast<uint64_t>((s.train + s.test) * (s.dense + s.tables * bag + 1)) * 4;
}

/// The label is 1 if this score is positive: random weights times the dense features, plus the mean of random row
/// worths of every bag.
std::shared_ptr<TensorSet> make(const std::string& name, const Spec& s, int64_t samples, uint32_t half) {
  std::vector<float> features, label;
  std::vector<int32_t> rows;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t score = 0;
    for (int64_t j = 0; j < s.dense; ++j) {
      int64_t x = short_of(drawn(half, dense, i * s.dense + j));
      score += x * short_of(drawn(0, weights, j));
      features.push_back(static_cast<float>(x) * 0x1p-15f);
    }
    for (int64_t k = 0; k < s.tables * bag; ++k) {
      rows.push_back(below(drawn(half, sparse, i * s.tables * bag + k), s.rows));
      score += 32768 / bag * short_of(drawn(0, worths, k / bag * s.rows + rows.back()));
    }
    label.push_back(score > 0 ? 1.0f : 0.0f);
  }
  return std::make_shared<TensorSet>(name,
                                     std::vector<std::pair<std::string, HostTensor>>{
                                         {"dense", host_tensor(DType::f32, {samples, s.dense}, features)},
                                         {"sparse", host_tensor(DType::i32, {samples, s.tables, bag}, rows)},
                                         {"label", host_tensor(DType::f32, {samples}, label)}},
                                     std::map<std::string, int64_t>{{"sparse", s.rows}});
}

}  // namespace

extern const DataForm synthetic_clicks_form{
    .name = "synthetic-clicks",
    .form = "synthetic-clicks:DENSE:TABLES:ROWS[:SAMPLES] (dense features and four rows of each table)",
    .open =
        [](const std::string& spec, const OpenOptions&) {
          Spec s = parse(spec);
          fitting(spec, bytes_of(s));
          return Sources{make("synthetic-clicks/train", s, s.train, 0), make("synthetic-clicks/test", s, s.test, 1)};
        },
    .takes_arguments = true,
    .generated_bytes = [](const std::string& spec) { return bytes_of(parse(spec)); }};

}  // namespace tutti::data
