// Drivers that the ICD loader skips silently.
#pragma once
#include <string>
#include <vector>

namespace tutti::opencl {

/// An .icd file whose library cannot be used.
struct BrokenIcd {
  std::string file, why;
};

/// Broken files in OCL_ICD_VENDORS (a folder, or one .icd file), else in /etc/OpenCL/vendors, sorted by name.
std::vector<BrokenIcd> broken_icds();

}  // namespace tutti::opencl
