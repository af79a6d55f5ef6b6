// Where drivers register themselves, and their libraries' names.
#pragma once

namespace tutti::os {

constexpr const char* opencl_driver_folder = "/etc/OpenCL/vendors";
constexpr const char* vulkan_driver_folders[] = {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
                                                 "/usr/share/vulkan/icd.d"};
/// Whether drivers register in these folders; on Windows in the registry.
#ifdef _WIN32
constexpr bool drivers_in_folders = false;
constexpr const char* nvml_library = "nvml.dll";
#else
constexpr bool drivers_in_folders = true;
constexpr const char* nvml_library = "libnvidia-ml.so.1";
#endif

}  // namespace tutti::os
