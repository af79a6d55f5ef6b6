// Where drivers register themselves.
#pragma once

namespace tutti {

constexpr const char* opencl_driver_folder = "/etc/OpenCL/vendors";
constexpr const char* vulkan_driver_folders[] = {"/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
                                                 "/usr/share/vulkan/icd.d"};

}  // namespace tutti
