// TUTTI_TRACE=texts: what the device's compiler is given.
#pragma once
#include "sdk/driver.h"
#include "sdk/plugin.h"
#include "sdk/rendered/plan.h"

namespace tutti::sdk {

/// Where TUTTI_TRACE names `texts`: writes each kernel's text, as the compiler gets it, to a file of a new folder
/// tutti-kernels-… of the temporary folder, and says in the host's log which file holds which kernel, its group and
/// whether it is exact.
void trace_texts(const Host& host, const Traits& traits, const RenderedPlan& plan);

}  // namespace tutti::sdk
