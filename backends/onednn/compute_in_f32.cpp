#include "backends/onednn/compute_in_f32.h"

#include <algorithm>

#include "kernels/cpu/eval.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

constexpr auto f32 = dnnl::memory::data_type::f32;

/// One input or result: `count` numbers, 16-bit outside and f32 inside, reordered in between if the inner kernel needs
/// another layout.
struct Side {
  int64_t count = 0;
  size_t wide_bytes = 0;
  KernelPtr reorder;  // null: conversion and inner kernel use the same layout
  size_t reordered_bytes = 0;
  size_t bytes() const { return aligned(wide_bytes) + aligned(reordered_bytes); }
};

/// The layout of `f` with another dtype; row-major if `f` has blocks or padding.
Layout retyped(const Layout& f, const Desc& plain_like, dnnl::memory::data_type t) {
  bool strided = !f.plain && f.desc.get_inner_nblks() == 0 && f.desc.get_dims() == plain_like.get_dims() &&
                 f.desc.get_padded_dims() == f.desc.get_dims() && f.desc.get_submemory_offset() == 0 &&
                 f.desc.get_size() == static_cast<size_t>(num_elements(f.desc.get_dims())) * 2;
  if (!strided) return {true, plain_desc(t, plain_like.get_dims())};
  return {false, Desc(f.desc.get_dims(), t, f.desc.get_strides())};
}

class Widened : public Kernel {
 public:
  Widened(const NodeView& c, KernelPtr wide)
      : wide_(std::move(wide)), storage_(kernels::storage_of(c.in(0).dtype)), threads_(c.threads) {
    auto narrow = data_type(c.in(0).dtype);
    size_t shared = wide_->scratch;
    implementation = wide_->implementation;
    auto add = [&](const Layout& outer, const Layout& inner, bool result) {
      Shape dims = inner.desc.get_dims();
      TensorType type{DType::f32, dims};
      Layout between = retyped(outer, inner.desc, f32);
      Side s{num_elements(dims), num_bytes(type), nullptr, 0};
      if (between.desc != inner.desc) {
        s.reorder = make_reorder(type, result ? inner : between, result ? between : inner, threads_);
        s.reordered_bytes = inner.desc.get_size();
        shared = std::max(shared, s.reorder->scratch);
      }
      scratch += s.bytes();
      sides_.push_back(std::move(s));
      return retyped(outer, inner.desc, narrow);
    };
    for (size_t k = 0; k < wide_->in.size(); ++k) in.push_back(add(c.layout(k), wide_->in[k], false));
    for (const Layout& f : wide_->out) out.push_back(add({}, f, true));
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

}  // namespace tutti::onednn
