// Convolutions of f32 and their two gradients as products with the columns of the images, in pieces that fit a cache.
// The pieces depend on the geometry alone, so that results do not depend on the number of threads.
#pragma once
#include <cstddef>

#include "core/geometry/conv.h"

namespace tutti::blas {

/// y = x * w, prepared once and run many times.
class ConvForward {
 public:
  ConvForward(const ConvGeometry& g, int threads);
  size_t scratch_bytes() const;
  /// `bias`: per filter, or null.
  void run(const float* x, const float* w, const float* bias, float* y, std::byte* scratch) const;

 private:
  void item(int64_t number, const float* x, const float* w, const float* bias, float* y, float* scratch) const;
  ConvGeometry g_;
  int threads_;
  int64_t images_, rows_;  // per product: several images, or some rows of the windows of one
  bool direct_;            // the columns are the image
};

/// dx of a cotangent d.
class ConvDx {
 public:
  ConvDx(const ConvGeometry& g, int threads);
  size_t scratch_bytes() const;
  void run(const float* d, const float* w, float* dx, std::byte* scratch) const;

 private:
  void item(int64_t number, const float* d, const float* w, float* dx, float* scratch) const;
  void spoil(const float* w, float* dx) const;
  ConvGeometry g_;
  int threads_;
  int64_t images_, rows_, channels_;  // per product
  bool padded_;                       // some pixel reads padding
};

/// dw of a cotangent d.
class ConvDw {
 public:
  ConvDw(const ConvGeometry& g, int threads);
  size_t scratch_bytes() const;
  void run(const float* x, const float* d, float* dw, std::byte* scratch) const;

 private:
  void item(int64_t number, const float* x, const float* d, float* sums, float* scratch) const;
  ConvGeometry g_;
  int threads_;
  int64_t images_, rows_, channels_;  // per product
  int64_t chunks_;                    // of the batch; each has sums of its own
};

}  // namespace tutti::blas
