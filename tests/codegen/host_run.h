// Runs kernels that were rendered to C++ on the host: the same texts as on every device, without any device.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/codegen/host.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {

/// Compiled and loaded texts.
class HostKernels {
 public:
  /// Compiles all in one go. Throws std::runtime_error with the compiler's words.
  explicit HostKernels(const std::vector<std::string>& texts);
  ~HostKernels();
  HostKernels(const HostKernels&) = delete;
  HostKernel find(const std::string& text) const { return kernels_.at(text); }
  /// After so many rounds of a work-item all its loops end quietly: what a kernel's line "rounds" says must be enough.
  void allow(double rounds) const { *rounds_ = static_cast<int>(std::min(rounds, 2e9)); }

 private:
  void* library_ = nullptr;
  int* rounds_ = nullptr;
  std::map<std::string, HostKernel> kernels_;
};

/// The outputs after the launches of `work`, made for `target`, whose texts are all in `kernels`. Throws
/// std::runtime_error when a byte behind a buffer or an input was changed.
std::vector<Array> run_on_host(const HostKernels& kernels, const Target& target, const LaunchList& work,
                               const std::vector<Array>& inputs, const std::vector<Array>& like);

}  // namespace tutti::codegen::cases
