// Merges two models that differ only in the batch size.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "onnx/raise.h"

namespace tutti::onnx {
namespace {

const char* const batch_name = "batch";

class Merging {
 public:
  Merging(const Model& a, const Model& b, int64_t batch_a, int64_t batch_b)
      : a_(a), b_(b), batch_a_(batch_a), batch_b_(batch_b) {}

  Model run() {
    Model out{.path = a_.path, .name = a_.name, .opset = a_.opset, .opsets = a_.opsets, .weights = a_.weights};
    if (a_.nodes.size() != b_.nodes.size()) throw closed("the nodes change");
    for (size_t k = 0; k < a_.nodes.size(); ++k) node(a_.nodes[k], b_.nodes[k]);
    out.inputs = ports(a_.inputs, b_.inputs);
    out.outputs = ports(a_.outputs, b_.outputs);
    if (asks_) {
      auto input = std::ranges::find_if(out.inputs, [](const Port& p) { return !p.shape.empty() && p.shape[0] < 0; });
      if (input == out.inputs.end()) throw closed("no input has the batch as its first dimension, but sizes change");
      out.nodes.push_back({.name = batch_name,
                           .op = "Shape",
                           .inputs = {input->name},
                           .outputs = {batch_name},
                           .attributes = {{"start", int64_t{0}}, {"end", int64_t{1}}}});
    }
    out.nodes.insert(out.nodes.end(), nodes_.begin(), nodes_.end());
    for (size_t k = 0; k < out.nodes.size(); ++k) out.nodes[k].place = k;
    return out;
  }

 private:
  static Error closed(const std::string& what) {
    return invalid(
        fmt::format("the model cannot be exported with a dynamic batch dimension: {} with the batch size", what),
        "export a fixed batch size: " + option_text("batch", 1));
  }

  /// The size as a multiple of the batch size; 0 if it is the same in both models.
  int64_t batches(int64_t a, int64_t b, const std::string& where) const {
    if (a == b) return 0;
    if (a % batch_a_ != 0 || a / batch_a_ * batch_b_ != b) throw closed(fmt::format("the sizes of {} change", where));
    return a / batch_a_;
  }

  std::vector<Port> ports(const std::vector<Port>& a, const std::vector<Port>& b) const {
    std::vector<Port> out = a;
    if (a.size() != b.size()) throw closed("inputs or outputs change");
    for (size_t k = 0; k < a.size(); ++k) {
      if (a[k].shape.size() != b[k].shape.size())
        throw closed(fmt::format("the axes of '{}' change", printable(a[k].name)));
      for (size_t axis = 0; axis < a[k].shape.size(); ++axis)
        if (int64_t n = batches(a[k].shape[axis], b[k].shape[axis], fmt::format("'{}'", printable(a[k].name)))) {
          out[k].shape[axis] = -1;
          out[k].symbols[axis] = n == 1 ? batch_name : "";
        }
    }
    return out;
  }

  void node(const Node& a, const Node& b) {
    if (a == b) {
      nodes_.push_back(a);
      return;
    }
    Node rest = b;
    rest.attributes = a.attributes;
    const HostTensor *x = integers(a), *y = integers(b);
    if (a != rest || !x || !y || x->type != y->type) throw closed(a.text() + " changes");
    numbers(a, x->as<int64_t>(), y->as<int64_t>());
  }

  /// The value of a constant i64 vector; else null.
  static const HostTensor* integers(const Node& n) {
    auto it = n.attributes.find("value");
    const auto* t = n.op == "Constant" && it != n.attributes.end() ? std::get_if<HostTensor>(&it->second) : nullptr;
    return t && t->type.dtype == DType::i64 && t->type.shape.size() == 1 ? t : nullptr;
  }

  void numbers(const Node& n, Ints a, const Ints& b) {
    Ints of_batch;
    for (size_t k = 0; k < a.size(); ++k) of_batch.push_back(batches(a[k], b[k], n.text()));
    bool one = std::ranges::count_if(of_batch, [](int64_t k) { return k != 0; }) == 1;
    if (one && only_a_shape(n.outputs[0])) {  // a Reshape can infer one size itself
      a[static_cast<size_t>(std::ranges::find_if(of_batch, [](int64_t k) { return k != 0; }) - of_batch.begin())] = -1;
      constant(n.outputs[0], a);
      return;
    }
    asks_ = true;
    std::vector<std::string> parts;
    for (size_t k = 0; k < a.size(); ++k) {
      std::string part = fmt::format("{}:{}", n.outputs[0], k);
      if (of_batch[k] == 1) {
        parts.emplace_back(batch_name);
        continue;
      }
      constant(part, {of_batch[k] ? of_batch[k] : a[k]});
      if (of_batch[k]) {
        nodes_.push_back({.name = part + ":batches", .op = "Mul", .inputs = {batch_name, part}});
        part = nodes_.back().name;
        nodes_.back().outputs = {part};
      }
      parts.push_back(part);
    }
    nodes_.push_back(
        {.name = n.name, .op = "Concat", .inputs = parts, .outputs = n.outputs, .attributes = {{"axis", int64_t{0}}}});
  }

  void constant(const std::string& name, const Ints& all) {
    HostTensor t = host_tensor(DType::i64, {static_cast<int64_t>(all.size())}, all);
    nodes_.push_back({.name = name, .op = "Constant", .outputs = {name}, .attributes = {{"value", t}}});
  }

  bool only_a_shape(const std::string& name) const {
    return std::ranges::all_of(a_.nodes, [&](const Node& n) {
      if (std::ranges::find(n.inputs, name) == n.inputs.end()) return true;
      return n.op == "Reshape" && !n.attributes.contains("allowzero");
    });
  }

  const Model &a_, &b_;
  int64_t batch_a_, batch_b_;
  bool asks_ = false;  // whether a node needs the batch size as a number
  std::vector<Node> nodes_;
};

}  // namespace

Model with_open_batch(const Model& a, const Model& b, int64_t batch_a, int64_t batch_b) {
  return Merging(a, b, batch_a, batch_b).run();
}

}  // namespace tutti::onnx
