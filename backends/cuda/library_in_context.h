// A library for callers that do not handle contexts.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>

#include "backends/cuda/context.h"
#include "sdk/library.h"

namespace tutti::cuda {

/// Wraps a library so that every call is made in the device's context, and planners need not handle it.
class LibraryInContext : public sdk::Library {
 public:
  LibraryInContext(std::shared_ptr<Context> context, std::unique_ptr<const sdk::Library> library)
      : context_(std::move(context)), library_(std::move(library)) {}
  ~LibraryInContext() override {
    Current in(*context_, std::nothrow);
    library_.reset();
  }

  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::matmul, p, request);
  }
  codegen::LaunchList conv(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::conv, p, request);
  }
  codegen::LaunchList conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::conv_dx, p, request);
  }
  codegen::LaunchList conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::conv_dw, p, request);
  }
  codegen::LaunchList attention(const codegen::Attention& a, bool lse,
                                const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::attention, a, lse, request);
  }
  codegen::LaunchList attention_grad(const codegen::Attention& a, const sdk::LibraryRequest& request) const override {
    return plan(&sdk::Library::attention_grad, a, request);
  }

 private:
  template <class... P>
  codegen::LaunchList plan(codegen::LaunchList (sdk::Library::*of)(P...) const, std::type_identity_t<P>... p) const {
    Current in(*context_);
    return ((*library_).*of)(p...);
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<const sdk::Library> library_;
};

}  // namespace tutti::cuda
