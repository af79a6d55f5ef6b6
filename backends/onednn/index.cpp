// Rows by index, their adjoint, and values made from nothing.
#include <fmt/format.h>

#include "backends/onednn/kernel.h"
#include "kernels/eval.h"
#include "kernels/gather.h"
#include "kernels/parallel.h"
#include "kernels/random.h"

namespace tutti::onednn {
namespace {

int64_t product(const Shape& s, size_t first, size_t last) {
  return num_elements(std::span(s).subspan(first, last - first));
}

// ---- gather: x, index

Decline declines_gather(const Case& c) {
  if (Decline why = expect_inputs(c, 2); !why.empty()) return why;
  const Shape &x = c.in(0).shape, &index = c.in(1).shape;
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), x.size()));
  if (c.in(1).dtype != DType::i32) return "the index is not i32";
  if (x[axis] == 0 && num_elements(index) > 0) return "an empty axis";
  Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
  y.insert(y.end(), index.begin(), index.end());
  y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
  return expect_result(c, 0, {c.in(0).dtype, y});
}

KernelPtr make_gather(const Case& c) {
  const Shape& x = c.in(0).shape;
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), x.size()));
  int64_t outer = product(x, 0, axis), inner = product(x, axis + 1, x.size()), size = x[axis],
          count = num_elements(c.in(1).shape);
  return std::make_unique<FunctionKernel>(
      c, [=, bytes = size_of(c.in(0).dtype), threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::gather(in[0], static_cast<const int32_t*>(in[1]), out[0], outer, size, inner, count, bytes, threads);
      });
}

// ---- scatter_add: index, updates

Decline declines_scatter(const Case& c) {
  if (Decline why = expect_inputs(c, 2); !why.empty()) return why;
  const Shape &index = c.in(0).shape, &u = c.in(1).shape;
  int64_t axis = normalize_axis(c.node().attrs.i("axis"), c.out(0).shape.size()), size = c.node().attrs.i("size");
  DType t = c.in(1).dtype;
  if (c.in(0).dtype != DType::i32) return "the index is not i32";
  if (t != DType::f32 && t != DType::i32 && t != DType::u32 && t != DType::f16 && t != DType::bf16)
    return "dtype " + std::string(name(t));
  if (static_cast<size_t>(axis) + index.size() > u.size() ||
      !std::equal(index.begin(), index.end(), u.begin() + axis) || size < 0 || (size == 0 && num_elements(index) > 0))
    return "index, updates, axis and size do not fit";
  Shape y(u.begin(), u.begin() + axis);
  y.push_back(size);
  y.insert(y.end(), u.begin() + axis + static_cast<std::ptrdiff_t>(index.size()), u.end());
  return expect_result(c, 0, {t, y});
}

KernelPtr make_scatter(const Case& c) {
  const Shape &u = c.in(1).shape, &y = c.out(0).shape;
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), y.size()));
  int64_t outer = product(u, 0, axis), inner = product(y, axis + 1, y.size()), size = y[axis],
          count = num_elements(c.in(0).shape);
  int64_t reads = num_elements(u), writes = num_elements(y);
  DType t = c.in(1).dtype;
  int threads = c.threads;
  if (t != DType::f16 && t != DType::bf16)
    return std::make_unique<FunctionKernel>(c, [=](void* const* in, void* const* out, std::byte*) {
      kernels::scatter_add(static_cast<const int32_t*>(in[0]), in[1], out[0], outer, size, inner, count, t, threads);
    });
  // Narrow floats are added up in f32.
  kernels::Storage storage = kernels::storage_of(t);
  auto wide = static_cast<size_t>(reads + writes) * 4;
  return std::make_unique<FunctionKernel>(
      c,
      [=](void* const* in, void* const* out, std::byte* scratch) {
        auto* from = reinterpret_cast<float*>(scratch);
        float* to = from + reads;
        kernels::lanes().load(storage)(from, in[1], in[1], in[1], reads);
        kernels::scatter_add(static_cast<const int32_t*>(in[0]), from, to, outer, size, inner, count, DType::f32,
                             threads);
        kernels::lanes().store(storage)(out[0], to, to, to, writes);
      },
      wide);
}

// ---- random_bits: seed, step · iota

Decline declines_random(const Case& c) {
  if (Decline why = expect_inputs(c, 2); !why.empty()) return why;
  int64_t stream = c.node().attrs.i("stream");
  if (c.in(0) != TensorType{DType::u32, {2}} || c.in(1) != TensorType{DType::i32, {}})
    return "a seed u32[2] and a step i32[] are needed";
  if (stream < 0 || stream > 0xffffffff) return fmt::format("stream {}", stream);
  return expect_result(c, 0, {DType::u32, c.node().attrs.ints("shape")});
}

KernelPtr make_random(const Case& c) {
  int64_t n = num_elements(c.out(0).shape);
  auto stream = static_cast<uint32_t>(c.node().attrs.i("stream"));
  return std::make_unique<FunctionKernel>(c, [n, stream, threads = c.threads](void* const* in, void* const* out,
                                                                              std::byte*) {
    auto* seed = static_cast<const uint32_t*>(in[0]);
    auto step = *static_cast<const uint32_t*>(in[1]);
    kernels::random_bits(static_cast<uint32_t*>(out[0]), n, uint64_t{seed[1]} << 32 | seed[0], step, stream, threads);
  });
}

Decline declines_iota(const Case& c) {
  if (Decline why = expect_inputs(c, 0); !why.empty()) return why;
  const Shape& shape = c.node().attrs.ints("shape");
  normalize_axis(c.node().attrs.i("axis"), shape.size());
  return expect_result(c, 0, {DType::i32, shape});
}

KernelPtr make_iota(const Case& c) {
  const Shape& y = c.out(0).shape;
  auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), y.size()));
  int64_t outer = product(y, 0, axis), size = y[axis], inner = product(y, axis + 1, y.size());
  return std::make_unique<FunctionKernel>(c, [=, threads = c.threads](void* const*, void* const* out, std::byte*) {
    kernels::iota(static_cast<int32_t*>(out[0]), outer, size, inner, threads);
  });
}

const Entry entries[] = {{"kernels gather", "gather", declines_gather, make_gather},
                         {"kernels scatter", "scatter_add", declines_scatter, make_scatter},
                         {"kernels philox", "random_bits", declines_random, make_random},
                         {"kernels iota", "iota", declines_iota, make_iota}};

}  // namespace

std::span<const Entry> index_entries() { return entries; }

}  // namespace tutti::onednn
