// Runs kernels on the first OpenCL device.
#pragma once
#include <string>
#include <vector>

#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {

/// "" or why nothing can be run here.
std::string no_opencl();
/// The outputs after the launches of `work`, made for `target`. Every buffer is followed by guard words; throws
/// std::runtime_error when one was changed, when an input was, or when a kernel does not compile (with its text).
std::vector<Array> run(const Target& target, const LaunchList& work, const std::vector<Array>& inputs,
                       const std::vector<Array>& like);
/// The same in one launch (serial.h).
std::vector<Array> run_serially(const Target& target, const LaunchList& work, const std::vector<Array>& inputs,
                                const std::vector<Array>& like);

}  // namespace tutti::codegen::cases
