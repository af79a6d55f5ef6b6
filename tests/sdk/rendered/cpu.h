// Traits of CPUs, for tests of plans.
#pragma once
#include "sdk/driver.h"

namespace tutti::test {

/// A CPU on which each launch stays one.
inline sdk::Traits cpu_of_many_launches() {
  sdk::Traits traits;
  traits.cpu_like = true;
  traits.language = &sdk::Language::opencl_c_alone();
  return traits;
}

}  // namespace tutti::test
