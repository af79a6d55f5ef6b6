// Products and convolutions by the library of a device's vendor, in place of the portable kernels.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "kernels/codegen/portable.h"
#include "sdk/plan/patterns.h"

namespace tutti::sdk {

/// gelu in its tanh form behind a product and its bias; `keep` has what it is applied to as a second result.
enum class Gelu { none, plain, keep };

/// What is asked of a library beside the shape. It declines what it does not offer.
struct LibraryRequest {
  OperandSum sum = OperandSum::none;  ///< of matmul without bias, relu and gelu; the results are then y, sum
  Gelu gelu = Gelu::none;             ///< of matmul without relu
  bool trial = false;                 ///< the call is run once before it is returned, and declined where that fails
  uint64_t tuning_bytes = 0;          ///< device memory for measuring algorithms meanwhile; 0: nothing is measured
};

/// What a Driver offers beside its kernels (Traits::library). Each function returns what computes the shape (buffers as
/// documented for the portable kernel of the same name, then further results as the request says; launches with
/// `library` set, which the driver alone understands) or throws Error(declined) with the reason; the portable kernel is
/// asked next.
class Library {
 public:
  virtual ~Library() = default;
  virtual codegen::LaunchList matmul(const codegen::Matmul&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv_dx(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv_dw(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }

 private:
  static Error none() { return {Code::declined, "the device's library has none"}; }
};

/// A LaunchList of one call on `buffers` buffers (inputs, then results), and behind them `scratch` bytes where that is
/// not 0. The driver gets `call` back as Launch::library: make it a pointer to the type that the driver casts to.
codegen::LaunchList launch_of(std::shared_ptr<const void> call, std::string name, size_t buffers, uint64_t scratch = 0);

}  // namespace tutti::sdk
