// Products, convolutions and attention with the device vendor's library instead of portable kernels.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "kernels/codegen/portable.h"
#include "sdk/plan/patterns.h"

namespace tutti::sdk {

struct Traits;

/// Fused tanh gelu after a product and its bias; `keep` also returns its input as a second result.
enum class Gelu { none, plain, keep };

/// Requests to a library in addition to the shape. It declines unsupported ones.
struct LibraryRequest {
  OperandSum sum = OperandSum::none;  ///< for matmul without bias, relu and gelu; the results are y, sum
  Gelu gelu = Gelu::none;             ///< for matmul without relu
  bool trial = false;                 ///< runs the call once before returning it, and declines if that fails
  uint64_t tuning_bytes = 0;          ///< device memory for benchmarking algorithms; 0: no benchmarking
  /// If set, the library is only asked whether it computes the node faster than the portable kernels with these traits.
  /// If it finds that it does not, it declines; else it may accept without a trial.
  const Traits* portable = nullptr;
};

/// Library functions of a Driver (Traits::library). Each returns launches that compute the shape: buffers as documented
/// for the portable kernel of the same name, followed by additional results of the request; launches have `library`
/// set, which only the driver interprets. Throws Error(declined) with the reason; then the portable kernel is used.
class Library {
 public:
  virtual ~Library() = default;
  virtual codegen::LaunchList matmul(const codegen::Matmul&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv_dx(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }
  virtual codegen::LaunchList conv_dw(const codegen::Conv&, const LibraryRequest& = {}) const { throw none(); }
  /// Results y, and lse if `lse`.
  virtual codegen::LaunchList attention(const codegen::Attention&, [[maybe_unused]] bool lse,
                                        const LibraryRequest& = {}) const {
    throw none();
  }
  /// All three gradients.
  virtual codegen::LaunchList attention_grad(const codegen::Attention&, const LibraryRequest& = {}) const {
    throw none();
  }

 private:
  static Error none() { return {Code::declined, "the device's library does not support it"}; }
};

/// A LaunchList of one call with `buffers` buffers (inputs, then results), followed by a scratch buffer of `scratch`
/// bytes if that is not 0. The driver gets `call` as Launch::library and casts it back to its type.
codegen::LaunchList launch_of(std::shared_ptr<const void> call, std::string name, size_t buffers, uint64_t scratch = 0);

}  // namespace tutti::sdk
