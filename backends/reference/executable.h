// One program on the reference device: where its values live and how it runs.
#pragma once
#include <memory>

#include "backends/reference/reference.h"
#include "graph/expr.h"
#include "sdk/memory.h"

namespace tutti {
struct OpDef;
}

namespace tutti::reference {

/// What a session and its executables share.
struct Shared {
  sdk::Meter meter;
  sdk::HostStates states;
  uint64_t tickets = 0;
};

/// A node's record and the node's attributes over the record's defaults; of an elementwise node whose op has no record
/// here, the expression.
struct Bound {
  const OpDef* op = nullptr;
  Attrs attrs;
  Expr expr = {};
};

/// Finds the record of node `k` and checks version, attributes, inputs and results against it. An elementwise node
/// needs none: it brings its expression. Throws Error(declined) saying what the device cannot run.
Bound bind(const sdk::Program& program, uint32_t k);

/// A program with `bound[k]` for each node; `timed`: every node's time is taken.
std::unique_ptr<sdk::Executable> make_executable(Shared& shared, sdk::Program program, std::vector<Bound> bound,
                                                 bool timed);

}  // namespace tutti::reference
