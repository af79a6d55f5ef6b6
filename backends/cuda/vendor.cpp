#include "backends/cuda/vendor.h"

#include <fmt/format.h>

#include <cstdlib>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cudnn.h"

namespace tutti::cuda {
namespace {

class Vendor : public sdk::Library {
 public:
  Vendor(std::shared_ptr<const Cublas> products, std::shared_ptr<const Cudnn> convolutions)
      : products_(std::move(products)), convolutions_(std::move(convolutions)) {}

  dialect::Work matmul(const dialect::Matmul& p) const override {
    return products_ ? products_->matmul(p) : Library::matmul(p);
  }
  dialect::Work conv(const dialect::Conv& p) const override {
    return convolutions_ ? convolutions_->conv(p) : Library::conv(p);
  }
  dialect::Work conv_dx(const dialect::Conv& p) const override {
    return convolutions_ ? convolutions_->conv_dx(p) : Library::conv_dx(p);
  }
  dialect::Work conv_dw(const dialect::Conv& p) const override {
    return convolutions_ ? convolutions_->conv_dw(p) : Library::conv_dw(p);
  }

 private:
  std::shared_ptr<const Cublas> products_;
  std::shared_ptr<const Cudnn> convolutions_;
};

template <class T>
std::shared_ptr<const T> open(const char* name, const std::function<void(const std::string&)>& log) {
  try {
    auto library = T::open();
    log(fmt::format("{} {}", name, library->version()));
    return library;
  } catch (const Error& e) {
    log(fmt::format("without {}: {}; {}", name, e.what(), e.remedy));
    return nullptr;
  }
}

}  // namespace

std::unique_ptr<const sdk::Library> open_library(const std::function<void(const std::string&)>& log) {
  const char* wanted = std::getenv("TUTTI_CUDA_LIBRARIES");
  if (wanted && std::string(wanted) == "0") return nullptr;
  auto products = open<Cublas>("cuBLASLt", log);
  auto convolutions = open<Cudnn>("cuDNN", log);
  if (!products && !convolutions) return nullptr;
  return std::make_unique<Vendor>(products, convolutions);
}

}  // namespace tutti::cuda
