#include "backends/onednn/nonfinite_padding.h"

#include <cmath>
#include <limits>
#include <vector>

#include "backends/onednn/numbers.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

class WithOutside : public Kernel {
 public:
  WithOutside(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype, int threads)
      : threads_(threads),
        images_(op == "conv2d_dx"),
        weights_(op == "conv2d_dw"),
        g_(g),
        conv_(std::move(conv)),
        other_(desc_of(conv_->in[1]), dtype),
        result_(desc_of(conv_->out[0]), dtype),
        blind_(g.h.blind() || g.w.blind()) {
    in = conv_->in;
    out = conv_->out;
    implementation = conv_->implementation;
    scratch = conv_->scratch;
  }
  void bind(std::span<void* const> from, std::span<void* const> to, std::byte* scratch) override {
    conv_->bind(from, to, scratch);
    other_.bind(from[1]);
    result_.bind(to[0]);
    bound_ = to[0] != nullptr;
  }
  void run() override {
    conv_->run();
    // For dw, checks the result instead of the larger cotangent: an inf or NaN in the cotangent is in the result too,
    // unless its position reads no pixel.
    if (bound_ && !(weights_ && !blind_ ? result_ : other_).finite()) spoil();
  }

 private:
  Shape weight(int64_t o, int64_t c, int64_t ky, int64_t kx) const {
    int64_t per_group = g_.filters_per_group();
    return g_.groups == 1 ? Shape{o, c, ky, kx} : Shape{o / per_group, o % per_group, c, ky, kx};
  }

  /// Whether a weight at that tap between the result's plane and any other plane is inf or NaN.
  bool special(int64_t plane, int64_t ky, int64_t kx) const {
    int64_t per_group = g_.filters_per_group(), depth = g_.depth();
    for (int64_t k = 0; k < (images_ ? per_group : depth); ++k) {
      Shape at = images_ ? weight(plane / depth * per_group + k, plane % depth, ky, kx) : weight(plane, k, ky, kx);
      if (!std::isfinite(other_.get(at))) return true;
    }
    return false;
  }

  /// Sets every result to NaN that has a NaN product with padding.
  void spoil() const {
    int64_t planes = images_ ? g_.channels : g_.filters, width = images_ ? g_.w.size : g_.w.count;
    kernels::share(planes, planes * g_.h.kernel * g_.w.kernel * g_.batch * width, threads_,
                   [&](int64_t first, int64_t last, int) {
                     for (int64_t plane = first; plane < last; ++plane) spoil_plane(plane, width);
                   });
  }

  void spoil_plane(int64_t plane, int64_t width) const {
    for (int64_t ky = 0; ky < g_.h.kernel; ++ky)
      for (int64_t kx = 0; kx < g_.w.kernel; ++kx) {
        if (!weights_ && !special(plane, ky, kx)) continue;
        std::vector<int64_t> positions = positions_outside(g_, images_, ky, kx);
        bool clean = true;
        for (int64_t n = 0; n < g_.batch && clean; ++n)
          for (int64_t place : positions) {
            Shape at = {n, plane, place / width, place % width};
            if (!weights_)
              result_.set(at, nan_);
            else if (clean = std::isfinite(other_.get(at)); !clean)
              break;
          }
        for (int64_t c = 0; weights_ && !clean && c < g_.depth(); ++c) result_.set(weight(plane, c, ky, kx), nan_);
      }
  }

  static constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();
  int threads_;
  bool images_, weights_;  // the result is images (dx), weights (dw)
  ConvGeometry g_;
  KernelPtr conv_;
  Numbers other_, result_;
  bool blind_;  // some position of the result of conv2d reads no pixel
  bool bound_ = false;
};

}  // namespace

KernelPtr with_nonfinite_padding(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype,
                                 int threads) {
  bool images = op == "conv2d_dx";
  if (all_inside(g, images)) return conv;
  return std::make_unique<WithOutside>(op, g, std::move(conv), dtype, threads);
}

}  // namespace tutti::onednn
