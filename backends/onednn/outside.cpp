#include "backends/onednn/outside.h"

#include <cmath>
#include <limits>
#include <vector>

namespace tutti::onednn {
namespace {

using kernels::WindowAxis;

/// Numbers in a layout of oneDNN's, by their coordinates.
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
  /// Whether all of them are numbers: what lies between them in memory is zero.
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

/// Whether result `o` of the window reads a pixel at `tap`.
bool reads(const WindowAxis& a, int64_t o, int64_t tap) {
  int64_t at = o * a.stride - a.padding + tap * a.dilation;
  return at >= 0 && at < a.size;
}
/// Whether some result reads pixel `i` at `tap`.
bool is_read(const WindowAxis& a, int64_t i, int64_t tap) {
  int64_t at = i + a.padding - tap * a.dilation;
  return at >= 0 && at % a.stride == 0 && at / a.stride < a.count;
}

/// Whether some result reads no pixel at any tap.
bool reads_nothing(const WindowAxis& a) {
  for (int64_t o = 0; o < a.count; ++o) {
    bool any = false;
    for (int64_t tap = 0; tap < a.kernel && !any; ++tap) any = reads(a, o, tap);
    if (!any) return true;
  }
  return false;
}

class WithOutside : public Kernel {
 public:
  WithOutside(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype)
      : images_(op == "conv2d_dx"),
        weights_(op == "conv2d_dw"),
        g_(g),
        conv_(std::move(conv)),
        other_(conv_->in[1].desc, dtype),
        result_(conv_->out[0].desc, dtype),
        blind_(reads_nothing(g.axis[0]) || reads_nothing(g.axis[1])) {
    in = conv_->in;
    out = conv_->out;
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
    // An inf or NaN among the cotangents of dw is in the result too, which is smaller, unless its place reads no pixel.
    if (bound_ && !(weights_ && !blind_ ? result_ : other_).finite()) spoil();
  }

 private:
  Shape weight(int64_t o, int64_t c, int64_t ky, int64_t kx) const {
    int64_t per_group = g_.w[0] / g_.groups;
    return g_.groups == 1 ? Shape{o, c, ky, kx} : Shape{o / per_group, o % per_group, c, ky, kx};
  }

  /// Whether a weight at that tap between the plane of the result and any other plane is inf or NaN.
  bool special(int64_t plane, int64_t ky, int64_t kx) const {
    int64_t per_group = g_.w[0] / g_.groups, depth = g_.w[1];
    for (int64_t k = 0; k < (images_ ? per_group : depth); ++k) {
      Shape at = images_ ? weight(plane / depth * per_group + k, plane % depth, ky, kx) : weight(plane, k, ky, kx);
      if (!std::isfinite(other_.get(at))) return true;
    }
    return false;
  }

  /// visit(y, x) for the places of a plane that the tap finds outside, until it gives false.
  template <class F>
  bool each_outside(int64_t ky, int64_t kx, F&& visit) const {
    const Shape& places = images_ ? g_.x : g_.y;
    auto inside = [&](size_t axis, int64_t i, int64_t tap) {
      return images_ ? is_read(g_.axis[axis], i, tap) : reads(g_.axis[axis], i, tap);
    };
    std::vector<int64_t> columns;
    for (int64_t x = 0; x < places[3]; ++x)
      if (!inside(1, x, kx)) columns.push_back(x);
    for (int64_t y = 0; y < places[2]; ++y) {
      if (inside(0, y, ky)) {
        for (int64_t x : columns)
          if (!visit(y, x)) return false;
      } else {
        for (int64_t x = 0; x < places[3]; ++x)
          if (!visit(y, x)) return false;
      }
    }
    return true;
  }

  /// Every result that a product with the outside makes NaN becomes so.
  void spoil() const {
    int64_t planes = images_ ? g_.groups * g_.w[1] : g_.w[0], batch = g_.x[0];
#pragma omp parallel for
    for (int64_t plane = 0; plane < planes; ++plane)
      for (int64_t ky = 0; ky < g_.w[2]; ++ky)
        for (int64_t kx = 0; kx < g_.w[3]; ++kx) {
          if (!weights_ && !special(plane, ky, kx)) continue;
          bool clean = true;
          for (int64_t n = 0; n < batch && clean; ++n)
            clean = each_outside(ky, kx, [&](int64_t y, int64_t x) {
              if (weights_) return std::isfinite(other_.get({n, plane, y, x}));
              result_.set({n, plane, y, x}, nan_);
              return true;
            });
          for (int64_t c = 0; weights_ && !clean && c < g_.w[1]; ++c) result_.set(weight(plane, c, ky, kx), nan_);
        }
  }

  static constexpr double nan_ = std::numeric_limits<double>::quiet_NaN();
  bool images_, weights_;  // the result is images (dx), weights (dw)
  ConvGeometry g_;
  KernelPtr conv_;
  Numbers other_, result_;
  bool blind_;  // some place of the result of conv2d reads no pixel at all
  bool bound_ = false;
};

/// Whether no tap of any result (of dx: of any pixel) lies outside.
bool all_inside(const WindowAxis& a, bool images) {
  for (int64_t tap = 0; tap < a.kernel; ++tap) {
    if (!images && !(reads(a, 0, tap) && reads(a, a.count - 1, tap))) return false;
    for (int64_t i = 0; images && i < a.size; ++i)
      if (!is_read(a, i, tap)) return false;
  }
  return true;
}

}  // namespace

KernelPtr with_outside(const std::string& op, const ConvGeometry& g, KernelPtr conv, DType dtype) {
  bool images = op == "conv2d_dx";
  if (all_inside(g.axis[0], images) && all_inside(g.axis[1], images)) return conv;
  return std::make_unique<WithOutside>(op, g, std::move(conv), dtype);
}

}  // namespace tutti::onednn
