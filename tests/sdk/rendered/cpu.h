// Traits of CPUs, for tests of plans.
#pragma once
#include "sdk/driver.h"

namespace tutti::test {

/// A CPU on which each launch stays one: its language has no parts.
inline sdk::Traits cpu_of_many_launches() {
  static const sdk::Language& plain = *[] {
    auto* language = new sdk::Language(sdk::Language::opencl_c());
    language->part = nullptr;
    return language;
  }();
  sdk::Traits traits;
  traits.cpu_like = true;
  traits.language = &plain;
  return traits;
}

}  // namespace tutti::test
