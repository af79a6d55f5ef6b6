#include "backends/cuda/row_copy.h"

#include <fmt/format.h>

#include <array>

namespace tutti::cuda {
namespace {

constexpr uint32_t threads = 256;

// A thread writes 16 bytes. Within a row, the distance of what it reads from a multiple of 16 bytes is the same for all
// threads, so there is no divergence but at the ends of rows.
constexpr const char* body = R"(
extern "C" __global__ void __launch_bounds__(256) tutti_copy_rows(const uint4* from, uint4* to, unsigned rows,
                                                                  unsigned width, unsigned from_pitch,
                                                                  unsigned to_pitch) {
  const unsigned total = rows * to_pitch, last = (rows - 1u) * from_pitch + width;
  const unsigned first = (blockIdx.x * 256u + threadIdx.x) * PER;
  if (first >= total) return;
  const unsigned row = first / to_pitch, column = first - row * to_pitch;
  const unsigned source = row * from_pitch + column, chunk = source / PER, shift = (source % PER) * sizeof(Element);
  if (column + PER <= width && (chunk + 2u) * PER <= last) {
    const uint4 a = from[chunk], b = shift ? from[chunk + 1u] : a;
    unsigned w0 = a.x, w1 = a.y, w2 = a.z, w3 = a.w, w4 = b.x, w5 = b.y, w6 = b.z, w7 = b.w;
    if (shift & 4u) w0 = w1, w1 = w2, w2 = w3, w3 = w4, w4 = w5, w5 = w6, w6 = w7;
    if (shift & 8u) w0 = w2, w1 = w3, w2 = w4, w3 = w5, w4 = w6;
    if (shift & 2u) {
      w0 = (w0 >> 16) | (w1 << 16);
      w1 = (w1 >> 16) | (w2 << 16);
      w2 = (w2 >> 16) | (w3 << 16);
      w3 = (w3 >> 16) | (w4 << 16);
    }
    to[first / PER] = make_uint4(w0, w1, w2, w3);
    return;
  }
  for (unsigned i = first; i < first + PER && i < total; ++i) {
    const unsigned r = i / to_pitch, c = i - r * to_pitch;
    ((Element*)to)[i] = c < width ? ((const Element*)from)[r * from_pitch + c] : (Element)0;
  }
}
)";

sdk::KernelSource source_of(size_t element_bytes) {
  sdk::KernelSource s;
  s.text = fmt::format("typedef unsigned {} Element;\n#define PER {}u\n{}", element_bytes == 2 ? "short" : "int",
                       16 / element_bytes, body);
  s.entry = "tutti_copy_rows";
  s.local = {threads, 1, 1};
  s.written = {false, true};
  return s;
}

}  // namespace

RowCopier::RowCopier(const KernelMaker& kernels, size_t element_bytes)
    : per_chunk_(static_cast<uint32_t>(16 / element_bytes)), kernel_(kernels.make(source_of(element_bytes))) {}

void RowCopier::run(CUstream stream, CUdeviceptr from, CUdeviceptr to, const RowCopy& copy) const {
  uint32_t chunks = (copy.rows * copy.to_pitch + per_chunk_ - 1) / per_chunk_;
  RowCopy c = copy;
  std::array<void*, 6> parameters = {&from, &to, &c.rows, &c.width, &c.from_pitch, &c.to_pitch};
  kernel_->launch(stream, {(chunks + threads - 1) / threads, 1, 1}, parameters.data());
}

}  // namespace tutti::cuda
