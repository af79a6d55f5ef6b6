// What a driver's own calls promise, held to directly: programs reach only a part of it.
#pragma once
#include <string>

#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::sdk {

/// Holds a driver to one of its promises, which the session option `self_check` of rendered devices names (`tutti
/// conformance` gives it):
///   groups      launch runs every group of all three dimensions once
///   alignment   memory starts at multiples of Traits::alignment
///   memory      allocations are as large as they were asked for and apart from each other; what does not fit is
///               Code::no_memory
///   identity    Traits::identity names the listed driver's versions, and no other device has it
/// Throws Error(internal) saying what does not hold and where to look, Error(invalid) for another name.
void self_check(Driver& driver, const std::string& what, const Device& listed);

}  // namespace tutti::sdk
