#include <fmt/format.h>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "graph/op.h"

namespace tutti {

// public
extern TUTTI_API const OpDef random_bits_op;
/// u32 random words of Philox4x32-10: element e is word e % 4 of random_block(seed, step, stream, e / 4). `seed` is
/// u32[2] (low word first), `step` an i32 scalar, `stream` in [0, 2^32). Pure: equal arguments give equal words.
inline Value random_bits(Value seed, Value step, Shape shape, int64_t stream) {
  return call(random_bits_op, {seed, step}, {{"shape", std::move(shape)}, {"stream", Ints{stream}}});
}
// end of public
namespace {

Types infer(std::span<const TensorType> in, const Attrs& a) {
  if (in[0] != TensorType{DType::u32, {2}}) throw invalid("the seed must be u32[2]");
  if (in[1] != TensorType{DType::i32, {}}) throw invalid("the step must be i32[]");
  int64_t stream = a.i("stream");
  if (stream < 0 || stream > 0xffffffff) throw invalid(fmt::format("stream {} is outside [0, 2^32)", stream));
  return {{DType::u32, a.ints("shape")}};
}

void reference(std::span<const Tensor> in, std::span<Tensor> out, const Attrs& a) {
  uint64_t seed = uint64_t{static_cast<uint32_t>(in[0].at[1])} << 32 | static_cast<uint32_t>(in[0].at[0]);
  auto step = static_cast<uint32_t>(static_cast<int64_t>(in[1].at[0])), stream = static_cast<uint32_t>(a.i("stream"));
  std::vector<double>& y = out[0].at;
  for (size_t block = 0; block * 4 < y.size(); ++block) {
    auto words = random_block(seed, step, stream, block);
    for (size_t k = 0; k < 4 && block * 4 + k < y.size(); ++k) y[block * 4 + k] = words[k];
  }
}

Sample sample(Shape shape, int64_t stream) {
  return {.shapes = {{2}, {}},
          .attrs = {{"shape", std::move(shape)}, {"stream", Ints{stream}}},
          .ranges = {{0, 4294967295.0}, {0, 1000000}},
          .dtypes = {DType::u32, DType::i32}};
}

}  // namespace

const OpDef random_bits_op{
    .name = "random_bits",
    .doc = "y (u32): element e is word e % 4 of Philox4x32-10 with key `seed` and counter (e / 4, step, stream)",
    .inputs = {"seed", "step"},
    .attrs = {{"shape", Ints{1}}, {"stream", Ints{0}}},
    .ordered = true,
    .infer = infer,
    .reference = reference,
    .samples = {sample({3, 5}, 0), sample({4}, 4294967295), sample({}, 7), sample({0}, 1), sample({65537}, 3)}};

}  // namespace tutti
