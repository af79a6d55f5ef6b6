#include "backends/cuda/vendor.h"

#include <fmt/format.h>

#include <cstdlib>

namespace tutti::cuda {
namespace {

class Vendor : public sdk::Library {
 public:
  Vendor(std::shared_ptr<const Cublas> products, std::shared_ptr<const Cudnn> dnn)
      : products_(std::move(products)), dnn_(std::move(dnn)), channels_last_(wants_channels_last()) {}

  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request) const override {
    return products_ ? products_->matmul(p, request) : Library::matmul(p, request);
  }
  codegen::LaunchList conv(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return has(p) ? dnn_->conv(p, request) : Library::conv(p, request);
  }
  codegen::LaunchList conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return has(p) ? dnn_->conv_dx(p, request) : Library::conv_dx(p, request);
  }
  codegen::LaunchList conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return has(p) ? dnn_->conv_dw(p, request) : Library::conv_dw(p, request);
  }
  codegen::LaunchList attention(const codegen::Attention& a, bool lse,
                                const sdk::LibraryRequest& request) const override {
    return dnn_ ? dnn_->attention(a, lse, request) : Library::attention(a, lse, request);
  }
  codegen::LaunchList attention_grad(const codegen::Attention& a, const sdk::LibraryRequest& request) const override {
    return dnn_ ? dnn_->attention_grad(a, request) : Library::attention_grad(a, request);
  }

 private:
  /// TUTTI_CUDA_LAYOUT. Throws Error(invalid).
  static bool wants_channels_last() {
    const char* layout = std::getenv("TUTTI_CUDA_LAYOUT");
    if (layout && std::string(layout) != "nchw" && std::string(layout) != "nhwc")
      throw invalid(fmt::format("cuda: invalid value TUTTI_CUDA_LAYOUT={}", layout), "use nchw or nhwc");
    return !layout || std::string(layout) == "nhwc";
  }
  bool has(const codegen::Conv& p) const { return dnn_ && (channels_last_ || !p.channels_last); }

  std::shared_ptr<const Cublas> products_;
  std::shared_ptr<const Cudnn> dnn_;
  bool channels_last_;
};

template <class T, class... Arguments>
std::shared_ptr<const T> open(const char* name, const std::function<void(const std::string&)>& log,
                              Arguments... arguments) {
  try {
    auto library = T::open(std::move(arguments)...);
    log(fmt::format("{} {}", name, library->version()));
    return library;
  } catch (const Error& e) {
    log(fmt::format("{} is not used: {}; {}", name, e.what(), e.remedy));
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<const sdk::Library> join(std::shared_ptr<const Cublas> products, std::shared_ptr<const Cudnn> dnn) {
  return std::make_unique<Vendor>(std::move(products), std::move(dnn));
}

bool wants_tf32(const sdk::Options& options) {
  bool tf32 = false;
  for (const auto& [key, value] : options) {
    if (key != "precision")
      throw invalid(fmt::format("cuda: unknown option '{}'", key), "the valid option is: precision");
    if (value != "f32" && value != "tf32")
      throw invalid(fmt::format("cuda: invalid value '{}' for option 'precision'", value), "use f32 or tf32");
    tf32 = value == "tf32";
  }
  return tf32;
}

std::unique_ptr<const sdk::Library> open_library(const std::function<void(const std::string&)>& log, int driver_version,
                                                 bool tf32, std::shared_ptr<Tuner> tuner,
                                                 std::shared_ptr<const KernelMaker> kernels, int capability) {
  const char* wanted = std::getenv("TUTTI_CUDA_LIBRARIES");
  if (wanted && std::string(wanted) == "0") return nullptr;
  auto products = open<Cublas>("cuBLASLt", log, driver_version, tf32, tuner, kernels);
  auto dnn = open<Cudnn>("cuDNN", log, driver_version, tf32, std::move(tuner), std::move(kernels), capability);
  if (!products && !dnn) return nullptr;
  return join(std::move(products), std::move(dnn));
}

}  // namespace tutti::cuda
