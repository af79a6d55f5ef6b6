// Kernel source and launch: types shared from planning to the device's driver.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tutti::codegen {

/// One kernel, ready for the device's compiler.
struct KernelSource {
  std::string text;                           ///< in the device's language
  std::string entry = "kernel_main";          ///< the function to call (Language::entry)
  std::array<uint32_t, 3> local = {1, 1, 1};  ///< work-items per group
  std::vector<bool> written;                  ///< per parameter
  std::vector<bool> texels;                   ///< per parameter: a uniform texel buffer of float4 (Vulkan); empty: none
  /// Content of the last parameter, `numbers`, if there is one. The planner stores them in a constant, which is the
  /// launch's last buffer.
  std::vector<uint32_t> numbers;
  bool exact = false;  ///< needs correctly rounded / and sqrt (OpenCL: -cl-fp32-correctly-rounded-divide-sqrt where
                       ///< offered) and no contraction (CUDA: --fmad=false)
  bool whole_subgroups = false;  ///< all subgroups of a group must be full (Vulkan)
  bool denormals = false;        ///< keeps denormal numbers (OpenCL: without -cl-denorms-are-zero)

  size_t buffers() const { return written.size(); }  ///< number of parameters
};

/// One launch. Each layer has its own types for kernels and buffers.
template <class Kernel, class Buffer>
struct LaunchOf {
  Kernel kernel = {};
  std::vector<Buffer> buffers;                 ///< per parameter
  std::array<uint32_t, 3> groups = {1, 1, 1};  ///< groups, not work-items; each from 1 to 65535
  std::string name;                            ///< "matmul fc1", for traces and errors
  bool copy = false;                           ///< buffers[0] → buffers[1], no kernel
  std::shared_ptr<const void> library = {};    ///< call made by the device's sdk::Library, runs instead of the kernel

  /// Converts the launch to the next layer's types; `resolve` maps buffers.
  template <class K, class F>
  auto with(K other, F&& resolve) const {
    LaunchOf<K, std::invoke_result_t<F, const Buffer&>> launch{std::move(other), {}, groups, name, copy, library};
    for (const Buffer& b : buffers) launch.buffers.push_back(resolve(b));
    return launch;
  }
};

}  // namespace tutti::codegen
