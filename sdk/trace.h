// Trace output of sessions to the host's log (TUTTI_TRACE).
#pragma once
#include <functional>
#include <span>
#include <string>

#include "sdk/plugin.h"

namespace tutti::sdk {

/// Receives one line per decision of a planner; may be empty.
using Trace = std::function<void(const std::string&)>;

/// Writes to the host's log if TUTTI_TRACE contains `dispatch`, else empty.
Trace dispatch_trace(const Host& host);

/// TUTTI_TRACE=kernels: logs the mean times of an executable's steps over `runs` runs; nothing if there was no run.
/// `seconds` are sums per step, name(k) is the name of step k.
void log_times(const Host& host, uint64_t runs, std::span<const double> seconds,
               const std::function<std::string(size_t)>& name);

}  // namespace tutti::sdk
