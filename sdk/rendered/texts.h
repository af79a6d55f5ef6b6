// TUTTI_TRACE=texts: dumps kernel sources.
#pragma once
#include "sdk/driver.h"
#include "sdk/plugin.h"
#include "sdk/rendered/plan.h"

namespace tutti::sdk {

/// If TUTTI_TRACE contains `texts`: writes the text of each kernel for the compiler to a file in a new folder
/// tutti-kernels-… in the temporary folder, and logs each file with its kernel, group size and exactness.
void trace_texts(const Host& host, const Traits& traits, const RenderedPlan& plan);

}  // namespace tutti::sdk
