// Memory layouts of values: row-major, or chosen by the device's library.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/shape.h"

namespace tutti::cpu {

class Kernel;
struct Layout;

/// Loops over a layout in memory order. Iteration i of loop k advances by `i * step[k]` along the logical axis
/// `axis[k]`; the loops are dense.
struct Physical {
  Shape dims;  ///< loop sizes, outermost first
  std::vector<size_t> axis;
  std::vector<int64_t> step;  ///< greater than 1 if the layout has blocks
};

/// Images [N, C, H, W] with contiguous channels: all of them (NHWC), or blocks of `inner`.
struct Channels {
  bool last = true;
  int64_t inner = 1;
  int64_t images(const Shape& s) const { return s[0] * ((s[1] + inner - 1) / inner); }
};

/// A library's description of a layout.
class Form {
 public:
  virtual ~Form() = default;
  /// The dimensions that it describes; may be a reshaped view of the value's.
  virtual Shape dims() const = 0;
  virtual size_t bytes() const = 0;
  virtual bool equals(const Form& other) const = 0;
  /// Whether the elements lie in the same order, whatever their dtype.
  virtual bool same_order(const Form& other) const = 0;
  /// Whether the elements are stored in that dtype.
  virtual bool stores(DType t) const = 0;
  /// Whether there are strides only: neither blocks nor padding.
  virtual bool strided() const = 0;
  /// See physical_loops and layout_as.
  virtual bool loops(const TensorType& t, Physical& loops) const = 0;
  virtual Layout as(const TensorType& t) const = 0;
  /// The contiguous channels, if the layout has them for images of that shape.
  virtual std::optional<Channels> channels(const Shape& shape) const = 0;
  /// A kernel that copies a value from one layout to another; one of them is this one, the other may be row-major.
  virtual std::unique_ptr<Kernel> reorder(const TensorType& t, const Layout& from, const Layout& to,
                                          int threads) const = 0;
};

/// The physical layout of one value. Row-major ("plain") is the layout of every state, feed and constant; temps keep
/// the layout of the kernel that produced them until a reader needs another one.
struct Layout {
  bool plain = true;
  std::shared_ptr<const Form> form = {};  ///< null: row-major; libraries may also describe plain layouts

  bool operator==(const Layout& other) const { return plain == other.plain && (plain || form->equals(*other.form)); }
};

/// Bytes of a value in that layout.
size_t layout_bytes(const Layout& f, const TensorType& t);
/// The layout with the same element positions as `f` for a value of another dtype and the same shape; plain if the
/// library cannot describe it.
Layout layout_as(const Layout& f, const TensorType& t);
/// Computes the loops. Returns false if the layout has padding, another dtype or another rank.
bool physical_loops(const Layout& f, const TensorType& t, Physical& loops);

}  // namespace tutti::cpu
