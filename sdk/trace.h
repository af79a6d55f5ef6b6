// What sessions write to the host's log for TUTTI_TRACE.
#pragma once
#include <functional>
#include <span>
#include <string>

#include "sdk/plugin.h"

namespace tutti::sdk {

/// Receives one line per decision of a planner; may be empty.
using Trace = std::function<void(const std::string&)>;

/// To the host's log where TUTTI_TRACE names `dispatch`, else empty.
Trace dispatch_trace(const Host& host);

/// TUTTI_TRACE=kernels: the mean times of an executable's steps over `runs` runs, to the host's log; nothing without a
/// run. `seconds` are the sums per step, name(k) the name of step k.
void log_times(const Host& host, uint64_t runs, std::span<const double> seconds,
               const std::function<std::string(size_t)>& name);

}  // namespace tutti::sdk
