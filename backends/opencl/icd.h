// Drivers that the ICD loader leaves out without a word.
#pragma once
#include <string>
#include <vector>

namespace tutti::opencl {

/// A file of the vendors' folder whose library does not serve.
struct BrokenIcd {
  std::string file, why;
};

/// Those of OCL_ICD_VENDORS (a folder, or one .icd file), else of /etc/OpenCL/vendors, sorted by name.
std::vector<BrokenIcd> broken_icds();

}  // namespace tutti::opencl
