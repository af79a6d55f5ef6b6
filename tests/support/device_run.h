// Runs a graph once on a device, for tests.
#pragma once
#include <map>
#include <string>

#include "core/runtime/session.h"
#include "graph/eval.h"
#include "graph/lower/compile.h"

namespace tutti::test {

/// Usable devices of the plugins found at run time, the reference excluded. The running test fails where a plugin that
/// TUTTI_REQUIRE names has none.
std::vector<Device> devices_under_test();

/// The same, and the reference.
std::vector<Device> devices_and_reference();

/// Compiles the graph for the device, feeds `inputs` (feeds and states), runs one step, and returns every state after
/// it.
std::map<std::string, Tensor> run_on(const Device& device, const Graph& g, const std::map<std::string, Tensor>& inputs,
                                     const std::map<std::string, std::string>& options = {});

/// The largest |a - b| over a tensor divided by the largest |b|; infinite when one has a NaN that the other has not.
double relative_error(const Tensor& a, const Tensor& b);

}  // namespace tutti::test
