// How one op of ours becomes ONNX nodes: forms in a table by the ops' names, one file of onnx/forms per family.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"
#include "onnx/raising.h"

namespace tutti::onnx {

using Names = std::vector<std::string>;

/// The nodes of one op. `add` gives a name per result, "" for one that ONNX does not give.
struct Form {
  std::function<Names(Raising&, const tutti::Node&)> add;
  /// Whether there is a form for such inputs and attributes; for all unless given.
  bool (*takes)(const Graph&, const tutti::Node&) = nullptr;
};

/// One node of ONNX for several of ours, of which the last is given; nothing where they do not fit.
using Fusion = std::optional<std::string> (*)(Raising&, const tutti::Node& last);

struct Forms {
  std::map<std::string, Form> by_op;
  std::multimap<std::string, Fusion> fusions;  ///< by the last op
};

// The families, each a file of onnx/forms.
void add_activations(Forms& f);
void add_convolutions(Forms& f);
void add_indexing(Forms& f);
void add_norms(Forms& f);
void add_products(Forms& f);
void add_recurrence(Forms& f);
void add_reductions(Forms& f);
void add_shapes(Forms& f);

/// All of them.
const Forms& forms();

/// The form of every elementwise op that has none of its own: node by node what its expression says.
Names add_expression(Raising& r, const tutti::Node& n);
bool takes_expression(const Graph& g, const tutti::Node& n);

/// attention without a mask in terms of softmax, which ONNX has; the others keep their decomposition.
Graph with_softmax(const Graph& g);

}  // namespace tutti::onnx
