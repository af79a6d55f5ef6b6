// Tests the contract of driver functions directly, because programs exercise only a part of it.
#pragma once
#include <string>

#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

/// Tests one guarantee of a driver, named by the session option `self_check` of rendered devices (used by `tutti
/// conformance`):
///   groups      launch runs every group of all three dimensions once
///   alignment   memory starts at multiples of Traits::alignment
///   memory      allocations are as large as they were asked for and apart from each other; what does not fit is
///               Code::no_memory
///   identity Traits::identity names the listed driver's versions, and no other device has it Throws Error(internal)
///   naming the violation and where to look, Error(invalid) for another name.
void self_check(Driver& driver, const std::string& what, const Device& listed);

}  // namespace tutti::sdk
