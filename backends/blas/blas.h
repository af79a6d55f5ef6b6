// The CPU plugin without oneDNN: products by a BLAS, or by our own kernels where there is none.
#pragma once
#include "backends/cpu/library.h"
#include "sdk/plugin.h"

namespace tutti::blas {

using cpu::Choice;
using cpu::Entry;
using cpu::FunctionKernel;
using cpu::KernelPtr;
using cpu::MatchResult;
using cpu::NodeView;

/// Products, convolutions and pools, for the device of backends/cpu.
const cpu::Library& library();

sdk::Plugin* make_plugin();

// The entries, one table per file.
std::span<const Entry> matmul_entries();
std::span<const Entry> conv_entries();
std::span<const Entry> pool_entries();

}  // namespace tutti::blas
