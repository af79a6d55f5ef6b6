// A program on the reference device: memory of its values and execution.
#pragma once
#include <memory>

#include "backends/reference/reference.h"
#include "core/abi/tutti_ops.h"
#include "graph/expr.h"
#include "sdk/host_session.h"

namespace tutti {
struct OpDef;
}

namespace tutti::reference {

/// State shared by a session and its executables.
struct Shared : sdk::HostShared {
  TuttiOps ops = {};  ///< definitions of the program's own ops
};

/// A node's op record and attributes with the record's defaults; for an elementwise node without a record, its
/// expression. Neither: the host computes it.
struct Bound {
  const OpDef* op = nullptr;
  Attrs attrs;
  Expr expr = {};
};

/// Finds the record of node `k` and checks version, attributes, inputs and results against it. Elementwise nodes need
/// no record, because they carry their expression, and ops that the host knows neither. Throws Error(declined) with the
/// unsupported feature.
Bound bind(const sdk::Program& program, uint32_t k, const TuttiOps& ops = {});

/// Creates the executable of a program with `bound[k]` for node k; `timed`: measures the time of every node.
std::unique_ptr<sdk::Executable> make_executable(Shared& shared, sdk::Program program, std::vector<Bound> bound,
                                                 bool timed);

}  // namespace tutti::reference
