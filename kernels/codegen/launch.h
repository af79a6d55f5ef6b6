// A kernel's text, and a launch: the same types from the planned kernel to the device's driver.
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
  std::vector<uint32_t> numbers;  ///< what the last parameter, `numbers`, holds, where there is one. The planner puts
                                  ///< them into a constant: a driver gets them as the launch's last buffer
  bool exact = false;  ///< needs correctly rounded / and sqrt (OpenCL: -cl-fp32-correctly-rounded-divide-sqrt where
                       ///< offered) and no contraction (CUDA: --fmad=false)

  size_t buffers() const { return written.size(); }  ///< parameters
};

/// One launch. Each layer has its own way to name a kernel and its buffers.
template <class Kernel, class Buffer>
struct LaunchOf {
  Kernel kernel = {};
  std::vector<Buffer> buffers;                 ///< per parameter
  std::array<uint32_t, 3> groups = {1, 1, 1};  ///< groups, not work-items; each from 1 to 65535
  std::string name;                            ///< "matmul fc1", for traces and errors
  bool copy = false;                           ///< buffers[0] → buffers[1], no kernel
  std::shared_ptr<const void> library = {};    ///< made by the device's sdk::Library: runs in place of the kernel

  /// The same launch as the next layer names it; `resolve` gives its buffer for one of these.
  template <class K, class F>
  auto with(K other, F&& resolve) const {
    LaunchOf<K, std::invoke_result_t<F, const Buffer&>> launch{std::move(other), {}, groups, name, copy, library};
    for (const Buffer& b : buffers) launch.buffers.push_back(resolve(b));
    return launch;
  }
};

}  // namespace tutti::codegen
