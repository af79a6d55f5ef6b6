// Learnable synthetic data: a random prototype per class plus noise.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "core/base/host_memory.h"
#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"

namespace tutti::data {
namespace {

// Philox streams of the data sets; `step` is 0 for training and 1 for test samples.
enum Stream : uint32_t { prototypes = 0x64617401, noise = 0x64617402, class_of = 0x64617403 };

// Uniform in [-1, 1), with 24 bits: exact in f32, so the same on every machine.
float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-23f - 1.0f; }

// Calls put with the words of elements [0, n) of draw (seed, step, stream).
template <class F>
void draw(uint64_t seed, uint32_t step, uint32_t stream, size_t n, F put) {
  for (size_t i = 0; i < n; i += 4) {
    auto words = random_block(seed, step, stream, i / 4);
    for (size_t k = i; k < std::min(i + 4, n); ++k) put(k, words[k - i]);
  }
}

/// The prototypes: stored if there are no more classes than samples, else computed again for each sample.
class Prototypes {
 public:
  Prototypes(uint64_t seed, size_t classes, size_t size, size_t samples) : seed_(seed), one_(size) {
    if (classes > samples) return;
    all_.resize(classes * size);
    draw(seed, 0, prototypes, all_.size(), [&](size_t i, uint32_t word) { all_[i] = uniform(word); });
  }
  const float* of(int32_t label) {
    size_t first = static_cast<size_t>(label) * one_.size();
    if (!all_.empty()) return all_.data() + first;
    for (size_t k = 0; k < one_.size(); ++k)
      one_[k] = uniform(random_block(seed_, 0, prototypes, (first + k) / 4)[(first + k) % 4]);
    return one_.data();
  }

 private:
  uint64_t seed_;
  std::vector<float> all_, one_;
};

Dataset make(const std::string& name, const Shape& shape, Prototypes& prototype, int64_t classes, int64_t count,
             uint64_t seed, uint32_t half) {
  Dataset d;
  d.name = name;
  d.classes = classes;
  d.samples.type = {DType::f32, shape};
  d.samples.type.shape.insert(d.samples.type.shape.begin(), count);
  auto n = static_cast<size_t>(count), size = static_cast<size_t>(num_elements(shape));
  d.labels.resize(n);
  // Multiply and shift; the bias of at most classes / 2^32 is negligible.
  draw(seed, half, class_of, n, [&](size_t i, uint32_t word) {
    d.labels[i] = static_cast<int32_t>(uint64_t{word} * static_cast<uint64_t>(classes) >> 32);
  });
  d.samples.bytes.resize(num_bytes(d.samples.type));
  size_t sample = 0, at = 0;  // element k = (sample, at), in order
  const float* centre = prototype.of(d.labels[0]);
  draw(seed, half, noise, n * size, [&](size_t k, uint32_t word) {
    if (at == size) {
      at = 0;
      centre = prototype.of(d.labels[++sample]);
    }
    float x = centre[at++] + uniform(word);
    std::memcpy(d.samples.bytes.data() + k * sizeof x, &x, sizeof x);
  });
  d.check();
  return d;
}

int64_t positive(const std::string& spec, const std::string& text, const char* what) {
  int64_t n = parse_number<int64_t>(text).value_or(0);
  if (n < 1)
    throw invalid(fmt::format("data '{}': '{}' is not a valid {} (an integer of at least 1)", spec, text, what),
                  use_one_of_the_forms(spec));
  return n;
}

struct Spec {
  Shape shape;
  int64_t classes = 0, train = 0, test = 0;
};

Spec parse(const std::string& spec) {
  auto parts = fields(spec, ':');
  if (parts.size() < 3 || parts.size() > 5)
    throw invalid(fmt::format("data '{}': expected 3 to 5 parts between colons, found {}", spec, parts.size()),
                  use_one_of_the_forms(spec));
  Spec s;
  for (const auto& d : fields(parts[1], 'x')) s.shape.push_back(positive(spec, d, "dimension"));
  s.classes = positive(spec, parts[2], "number of classes");
  s.train = parts.size() > 3 ? positive(spec, parts[3], "number of training samples") : 8192;
  s.test = parts.size() > 4   ? positive(spec, parts[4], "number of test samples")
           : parts.size() > 3 ? std::max<int64_t>(s.train / 4, 1)
                              : 2048;
  return s;
}

}  // namespace

uint64_t synthetic_bytes(const Shape& shape, int64_t classes, int64_t train, int64_t test) {
  constexpr int64_t limit = int64_t{1} << 33;  // 8 GiB
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  if (shape.empty() || num_elements(shape) < 1)
    throw invalid(fmt::format("synthetic data: shape {} has no elements", to_string(shape)));
  if (classes < 1 || train < 1 || test < 1 || classes > most || train > most || test > most)
    throw invalid(
        fmt::format("synthetic data: {} classes, {} training and {} test samples: each number must be in [1, 2^31)",
                    classes, train, test));
  int64_t samples = train + test, size = num_elements(shape);
  int64_t rows = samples + std::min(classes, samples) + 1;
  if (size > limit / 4 / rows)
    throw invalid(fmt::format("synthetic data: {} samples of shape {} need more than 8 GiB", rows, to_string(shape)),
                  "use fewer samples: synthetic:SHAPE:CLASSES:TRAIN:TEST");
  return static_cast<uint64_t>(rows * size * 4);
}

Split synthetic(const Shape& shape, int64_t classes, int64_t train, int64_t test, uint64_t seed) {
  uint64_t bytes = synthetic_bytes(shape, classes, train, test);
  const char* remedy = "use fewer samples: synthetic:SHAPE:CLASSES:TRAIN:TEST";
  if (uint64_t left = host_memory_left(); bytes > left)
    throw Error(Code::no_memory,
                fmt::format("synthetic data: {} bytes of memory are needed, but only {} are free", bytes, left),
                remedy);
  try {
    Prototypes prototype(seed, static_cast<size_t>(classes), static_cast<size_t>(num_elements(shape)),
                         static_cast<size_t>(train + test));
    return {make("synthetic/train", shape, prototype, classes, train, seed, 0),
            make("synthetic/test", shape, prototype, classes, test, seed, 1)};
  } catch (const std::bad_alloc&) {
    throw Error(Code::no_memory, fmt::format("synthetic data: not enough memory for {} bytes", bytes), remedy);
  }
}

extern const DataForm synthetic_form{.name = "synthetic",
                                     .form =
                                         "synthetic:SHAPE:CLASSES[:TRAIN[:TEST]], for example synthetic:1x28x28:10 or "
                                         "synthetic:1024:10:4096:512",
                                     .open =
                                         [](const std::string& spec, const OpenOptions&) {
                                           Spec s = parse(spec);
                                           return synthetic(s.shape, s.classes, s.train, s.test).sources();
                                         },
                                     .takes_arguments = true,
                                     .generated_bytes =
                                         [](const std::string& spec) {
                                           Spec s = parse(spec);
                                           return synthetic_bytes(s.shape, s.classes, s.train, s.test);
                                         }};

}  // namespace tutti::data
