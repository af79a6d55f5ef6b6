// Where drivers register themselves, and their libraries' names.
#pragma once

namespace tutti::os {

constexpr const char* opencl_driver_folder = "/etc/OpenCL/vendors";
constexpr const char* vulkan_driver_folders[] = {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
                                                 "/usr/share/vulkan/icd.d"};
#ifdef _WIN32
constexpr const char* nvml_library = "nvml.dll";
#else
constexpr const char* nvml_library = "libnvidia-ml.so.1";
#endif

}  // namespace tutti::os
