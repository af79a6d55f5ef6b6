// Converts ops to ONNX nodes: a table of forms by op name, one file of onnx/forms per family.
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

/// The ONNX nodes of one op. `add` returns a name per result, "" for a result that ONNX does not provide.
struct Form {
  std::function<Names(Raising&, const tutti::Node&)> add;
  /// Whether the form supports these inputs and attributes; null: all.
  bool (*takes)(const Graph&, const tutti::Node&) = nullptr;
};

/// Converts several nodes, of which the last is given, to one ONNX node; nullopt if they do not match.
using Fusion = std::optional<std::string> (*)(Raising&, const tutti::Node& last);

struct Forms {
  std::map<std::string, Form> by_op;
  std::multimap<std::string, Fusion> fusions;  ///< by the op of the last node
};

// The families; each is a file of onnx/forms.
void add_activations(Forms& f);
void add_convolutions(Forms& f);
void add_indexing(Forms& f);
void add_norms(Forms& f);
void add_products(Forms& f);
void add_recurrence(Forms& f);
void add_reductions(Forms& f);
void add_shapes(Forms& f);

/// The forms of all families.
const Forms& forms();

/// The form of elementwise ops without one of their own: one ONNX node per instruction of the expression.
Names add_expression(Raising& r, const tutti::Node& n);
bool takes_expression(const Graph& g, const tutti::Node& n);

/// Rewrites attention without a mask in terms of softmax, which ONNX has; other attention nodes keep their
/// decomposition.
Graph with_softmax(const Graph& g);

}  // namespace tutti::onnx
