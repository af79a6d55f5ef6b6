// Configuration of the OpenCL C++ bindings: OpenCL 1.2, with exceptions.
#pragma once
#include <cstdint>
#include <string>

#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/opencl.hpp>

#include "core/base/status.h"

namespace tutti::opencl {

/// "CL_OUT_OF_RESOURCES (-5)".
std::string code_text(cl_int code);
/// Maps an OpenCL error code: no_memory, device_lost, compile or internal.
Code code_of(cl_int code);
/// An error that names the failed call and its object: "opencl: clEnqueueNDRangeKernel of 'matmul fc1': CL_… (-5)".
Error error_of(cl_int code, const std::string& what);

/// Whether this error may have made the device permanently unusable.
inline bool is_loss(cl_int code) { return code_of(code) == Code::device_lost; }

}  // namespace tutti::opencl
