// Element access by coordinates in oneDNN layouts.
#pragma once
#include <cstdint>

#include "backends/onednn/desc.h"
#include "core/base/dtype.h"
#include "kernels/cpu/finite.h"

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
  bool finite() const { return kernels::all_finite(dtype_, at_, bytes_); }

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
