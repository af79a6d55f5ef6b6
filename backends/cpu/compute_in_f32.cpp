#include "backends/cpu/compute_in_f32.h"

#include <algorithm>

#include "kernels/cpu/eval.h"
#include "kernels/cpu/parallel.h"

namespace tutti::cpu {
namespace {

/// One input or result: `count` numbers, 16-bit outside and f32 inside, reordered in between if the inner kernel needs
/// another layout.
struct Side {
  int64_t count = 0;
  size_t wide_bytes = 0;
  KernelPtr reorder;  // null: conversion and inner kernel use the same layout
  size_t reordered_bytes = 0;
  size_t bytes() const { return aligned(wide_bytes) + aligned(reordered_bytes); }
};

/// The layout of `f` for a value of type `t`; row-major if `f` has blocks or padding.
Layout retyped(const Layout& f, const TensorType& t) {
  bool kept = !f.plain && f.form->strided() && f.form->dims() == t.shape;
  return kept ? f.form->as(t) : Layout{};
}

class Widened : public Kernel {
 public:
  Widened(const NodeView& c, KernelPtr wide)
      : wide_(std::move(wide)), storage_(kernels::storage_of(c.in(0).dtype)), threads_(c.threads) {
    DType narrow = c.in(0).dtype;
    size_t shared = wide_->scratch;
    implementation = wide_->implementation;
    auto add = [&](const Layout& outer, const Layout& inner, const Shape& shape, bool result) {
      TensorType type{DType::f32, inner.form ? inner.form->dims() : shape};
      Layout between = retyped(outer, type);
      Side s{num_elements(type.shape), num_bytes(type), nullptr, 0};
      if (!(between == inner)) {
        s.reorder = make_reorder(type, result ? inner : between, result ? between : inner, threads_);
        s.reordered_bytes = layout_bytes(inner, type);
        shared = std::max(shared, s.reorder->scratch);
      }
      scratch += s.bytes();
      sides_.push_back(std::move(s));
      return retyped(outer, {narrow, type.shape});
    };
    auto input = [&](size_t k) {
      return c.program.type(k < c.node().inputs.size() ? c.node().inputs[k] : c.epilogue.bias).shape;
    };
    for (size_t k = 0; k < wide_->in.size(); ++k) in.push_back(add(c.layout(k), wide_->in[k], input(k), false));
    for (size_t k = 0; k < wide_->out.size(); ++k)
      out.push_back(add({}, wide_->out[k], c.wants(k) ? c.out(k).shape : Shape{0}, true));
    scratch += shared;
  }

  void bind(std::span<void* const> from, std::span<void* const> to, std::byte* scratch) override {
    std::vector<void*> inside;
    for (size_t k = 0; k < sides_.size(); ++k) {
      narrow_.push_back(k < in.size() ? from[k] : to[k - in.size()]);
      converted_.push_back(scratch);
      inside.push_back(sides_[k].reorder ? scratch + aligned(sides_[k].wide_bytes) : scratch);
      scratch += sides_[k].bytes();
    }
    for (size_t k = 0; k < sides_.size(); ++k) {
      if (!sides_[k].reorder) continue;
      bool result = k >= in.size();
      void *source = result ? inside[k] : converted_[k], *target = result ? converted_[k] : inside[k];
      sides_[k].reorder->bind(std::span(&source, 1), std::span(&target, 1), scratch);
    }
    wide_->bind(std::span(inside).first(in.size()), std::span(inside).subspan(in.size()), scratch);
  }

  void run() override {
    for (size_t k = 0; k < in.size(); ++k) {
      to_f32(storage_, static_cast<float*>(converted_[k]), narrow_[k], sides_[k].count, threads_);
      if (sides_[k].reorder) sides_[k].reorder->run();
    }
    wide_->run();
    for (size_t k = in.size(); k < sides_.size(); ++k) {
      if (sides_[k].reorder) sides_[k].reorder->run();
      if (narrow_[k]) from_f32(storage_, narrow_[k], static_cast<float*>(converted_[k]), sides_[k].count, threads_);
    }
  }

 private:
  KernelPtr wide_;
  kernels::Storage storage_;
  int threads_;
  std::vector<Side> sides_;  // inputs, then results
  std::vector<void*> narrow_, converted_;
};

}  // namespace

void to_f32(kernels::Storage from, float* y, const void* x, int64_t n, int threads) {
  kernels::share(n, n, threads, [&](int64_t first, int64_t last, int) {
    const void* part = static_cast<const uint16_t*>(x) + first;
    kernels::isa_kernels().load(from)(y + first, part, part, part, last - first);
  });
}

void from_f32(kernels::Storage to, void* y, const float* x, int64_t n, int threads) {
  kernels::share(n, n, threads, [&](int64_t first, int64_t last, int) {
    const void* part = x + first;
    kernels::isa_kernels().store(to)(static_cast<uint16_t*>(y) + first, part, part, part, last - first);
  });
}

MatchResult mismatch_in_f32(const NodeView& c) {
  DType t = c.in(0).dtype;
  return is_narrow(t) ? "" : "dtype " + std::string(name(t));
}

KernelPtr make_in_f32(const NodeView& c, KernelPtr wide) { return std::make_unique<Widened>(c, std::move(wide)); }

}  // namespace tutti::cpu
