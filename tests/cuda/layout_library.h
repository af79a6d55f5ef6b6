// A library with convolutions of channels-last images, for tests of the layout of images.
#pragma once
#include <memory>

#include "sdk/library.h"

namespace tutti::cuda {

/// Accepts them in every dtype; its calls cannot run.
struct ChannelsLastLibrary : sdk::Library {
  bool grouped = true;             ///< whether it has grouped convolutions
  bool declines_when_run = false;  ///< whether it declines all of them once they are tried

  codegen::LaunchList conv(const codegen::Conv& p, const sdk::LibraryRequest& r) const override {
    return take(p, r, p.bias ? 4 : 3);
  }
  codegen::LaunchList conv_dx(const codegen::Conv& p, const sdk::LibraryRequest& r) const override {
    return take(p, r, 3);
  }
  codegen::LaunchList conv_dw(const codegen::Conv& p, const sdk::LibraryRequest& r) const override {
    return take(p, r, 3);
  }

 private:
  codegen::LaunchList take(const codegen::Conv& p, const sdk::LibraryRequest& r, size_t buffers) const {
    if (!p.channels_last) throw Error(Code::declined, "only channels-last images");
    if (p.groups > 1 && !grouped) throw Error(Code::declined, "no groups");
    if (declines_when_run && r.trial) throw Error(Code::declined, "not like this");
    return sdk::launch_of(std::make_shared<codegen::Conv>(p), "convolution", buffers);
  }
};

}  // namespace tutti::cuda
