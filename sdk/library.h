// Products and convolutions by the library of a device's vendor, in place of the portable kernels.
#pragma once
#include "core/base/status.h"
#include "kernels/dialect/portable.h"

namespace tutti::sdk {

/// What a Driver offers beside its kernels (Traits::library). Each function returns what computes the shape (buffers as
/// documented for the portable kernel of the same name; dispatches with `library` set, which the driver alone
/// understands) or throws Error(declined) with the reason; the portable kernel is asked next.
class Library {
 public:
  virtual ~Library() = default;
  virtual dialect::Work matmul(const dialect::Matmul&) const { throw none(); }
  virtual dialect::Work conv(const dialect::Conv&) const { throw none(); }
  virtual dialect::Work conv_dx(const dialect::Conv&) const { throw none(); }
  virtual dialect::Work conv_dw(const dialect::Conv&) const { throw none(); }

 private:
  static Error none() { return {Code::declined, "the device's library has none"}; }
};

}  // namespace tutti::sdk
