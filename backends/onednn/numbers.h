// Element access by coordinates in oneDNN layouts.
#pragma once
#include <cstdint>

#include "backends/onednn/desc.h"
#include "core/base/dtype.h"

namespace tutti::onednn {

/// Floats in a blocked layout. Slow, for single elements.
class Numbers {
 public:
  Numbers(const Desc& d, DType t)
      : dtype_(t),
        strides_(d.get_strides()),
        blocks_(d.get_inner_blks()),
        axes_(d.get_inner_idxs()),
        bytes_(d.get_size()) {}
  void bind(void* at) { at_ = at; }

  double get(const Shape& index) const { return load_element(dtype_, at_, offset(index)); }
  void set(const Shape& index, double x) const { store_element(dtype_, at_, offset(index), x); }
  /// Whether all elements are finite; padding between them is zero.
  bool finite() const {
    uint32_t special = 0;
    if (dtype_ == DType::f32) {
      auto* x = static_cast<const uint32_t*>(at_);
      for (size_t i = 0; i < bytes_ / 4; ++i) special |= (x[i] & 0x7f800000u) == 0x7f800000u;
    } else {
      uint16_t high = dtype_ == DType::f16 ? 0x7c00 : 0x7f80;
      auto* x = static_cast<const uint16_t*>(at_);
      for (size_t i = 0; i < bytes_ / 2; ++i) special |= (x[i] & high) == high;
    }
    return special == 0;
  }

 private:
  size_t offset(Shape index) const {
    int64_t at = 0, step = 1;
    for (size_t b = blocks_.size(); b-- > 0;) {  // the innermost block last
      int64_t& i = index[static_cast<size_t>(axes_[b])];
      at += i % blocks_[b] * step;
      step *= blocks_[b];
      i /= blocks_[b];
    }
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides_[d];
    return static_cast<size_t>(at);
  }

  DType dtype_;
  Shape strides_, blocks_, axes_;
  size_t bytes_;
  void* at_ = nullptr;
};

}  // namespace tutti::onednn
