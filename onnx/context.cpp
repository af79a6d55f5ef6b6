#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/printable.h"
#include "graph/ops.h"
#include "onnx/handler.h"
#include "onnx/lowering.h"

namespace tutti::onnx {
namespace {

constexpr int64_t most_integer = int64_t{1} << 31;

}  // namespace

Graph& Context::graph() const { return lowering_.graph(); }
int64_t Context::opset() const { return lowering_.model().opset; }
const LowerOptions& Context::options() const { return lowering_.options(); }

Value Context::in(size_t k) const {
  if (!has(k)) bad(fmt::format("input {} is missing", k));
  return lowering_.value(node_.inputs[k]);
}

Values Context::all() const {
  Values out;
  for (size_t k = 0; k < inputs(); ++k) out.push_back(in(k));
  return out;
}

bool Context::known(size_t k) const { return has(k) && lowering_.numbers(node_.inputs[k]).has_value(); }

Reals Context::numbers(size_t k, const char* what) const {
  if (!has(k)) bad(fmt::format("input {} ({}) is missing", k, what));
  auto all = lowering_.numbers(node_.inputs[k]);
  if (!all)
    unsupported(fmt::format("a {} ('{}') that is computed from data (all shapes are fixed before the first run)", what,
                            printable(node_.inputs[k])));
  return *all;
}

Ints Context::integers(size_t k, const char* what) const {
  Ints out;
  for (double x : numbers(k, what))
    out.push_back(static_cast<int64_t>(std::clamp<double>(std::isnan(x) ? 0 : x, -most_integer, most_integer)));
  return out;
}

int64_t Context::integer(size_t k, const char* what) const {
  Ints all = integers(k, what);
  if (all.size() != 1) bad(fmt::format("{} has {} elements, expected 1", what, all.size()));
  return all[0];
}

double Context::number(size_t k, const char* what) const {
  Reals all = numbers(k, what);
  if (all.size() != 1) bad(fmt::format("{} has {} elements, expected 1", what, all.size()));
  return all[0];
}

template <class T>
const T* Context::attribute(const std::string& name) const {
  auto it = node_.attributes.find(name);
  if (it == node_.attributes.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (!value)
    bad(fmt::format("attribute '{}' does not have the type that the ONNX specification gives it", printable(name)));
  return value;
}

int64_t Context::i(const std::string& name, int64_t otherwise) const {
  const auto* x = attribute<int64_t>(name);
  return std::clamp(x ? *x : otherwise, -most_integer, most_integer);
}

double Context::f(const std::string& name, double otherwise) const {
  const auto* x = attribute<double>(name);
  return x ? *x : otherwise;
}

std::string Context::s(const std::string& name, const std::string& otherwise) const {
  const auto* x = attribute<std::string>(name);
  return x ? *x : otherwise;
}

Ints Context::ints(const std::string& name, const Ints& otherwise) const {
  const auto* x = attribute<Ints>(name);
  Ints all = x ? *x : otherwise;
  for (int64_t& n : all) n = std::clamp(n, -most_integer, most_integer);
  return all;
}

Reals Context::reals(const std::string& name) const {
  const auto* x = attribute<Reals>(name);
  return x ? *x : Reals{};
}

std::vector<std::string> Context::texts(const std::string& name) const {
  const auto* x = attribute<std::vector<std::string>>(name);
  return x ? *x : std::vector<std::string>{};
}

const HostTensor& Context::tensor(const std::string& name) const {
  const auto* x = attribute<HostTensor>(name);
  if (!x) bad(fmt::format("attribute '{}' is missing", name));
  return *x;
}

std::optional<Reals> Context::elements(Value x) const { return lowering_.elements(x); }

const Body& Context::body(const std::string& name) const {
  const auto* x = attribute<Subgraph>(name);
  if (!x || !x->body) bad(fmt::format("attribute '{}' is missing", name));
  return *x->body;
}

Values Context::run(const Body& body, const Values& inputs) const { return lowering_.run(body, inputs); }

bool Context::wants(size_t k) const { return k < node_.outputs.size() && lowering_.live(node_.outputs[k]); }

std::optional<ElementType> Context::narrow_type(size_t k) const {
  const NarrowTypes& narrow = lowering_.model().narrow;
  auto it = has(k) ? narrow.find(node_.inputs[k]) : narrow.end();
  return it == narrow.end() ? std::nullopt : std::optional(it->second);
}

std::optional<Ints> Context::integers_or_attribute(size_t k, const std::string& name) const {
  if (has(k)) return integers(k, name.c_str());
  if (has_attribute(name)) return ints(name);
  return std::nullopt;
}

std::string Context::place() const { return fmt::format("{}: {}", lowering_.model().path, node_.text()); }

void Context::unsupported(const std::string& what) const {
  throw Unsupported(fmt::format("{}: {} is not supported", place(), what),
                    "docs/ONNX.md says what Tutti supports of this op");
}

void Context::bad(const std::string& what) const {
  throw invalid(fmt::format("{}: {}", place(), what), "export the model again; the file is damaged");
}

const Table& handlers() {
  static const Table table = [] {
    Table t;
    for (auto* add : {add_activations, add_arithmetic, add_comparisons, add_reductions, add_products, add_convolutions,
                      add_pools, add_resampling, add_norms, add_shapes, add_slices, add_indexing, add_constants,
                      add_recurrence, add_losses, add_control, add_quantized, add_classical})
      add(t);
    return t;
  }();
  return table;
}

HostTensor narrowed(const HostTensor& t, const std::string& place) {
  if (t.type.dtype != DType::i64) return t;
  std::vector<int32_t> narrow;
  for (int64_t x : t.as<int64_t>()) {
    constexpr int64_t low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
    constexpr int64_t end = int64_t{1} << 62;
    if ((x < low && x > -end) || (x > high && x < end))
      throw Unsupported(
          fmt::format("{} holds {}, which does not fit i32 (Tutti computes all integers in i32)", place, x),
          "use integers within the range of i32");
    narrow.push_back(static_cast<int32_t>(std::clamp(x, low, high)));
  }
  return host_tensor(DType::i32, t.type.shape, narrow);
}

Value constant_from(Graph& graph, const HostTensor& t, const std::string& place) {
  if (t.type.dtype != DType::i64) return graph.constant(t.type, t.bytes);
  HostTensor small = narrowed(t, place);
  return graph.constant(small.type, std::move(small.bytes));
}

int64_t axis_of(const Context& c, int64_t axis, size_t rank) {
  auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) c.bad(fmt::format("axis {} is out of range for a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + n : axis;
}

Value from_end(Value index, int64_t size) {
  return select(less(index, index.like(0)), index + static_cast<double>(size), index);
}

Value as_float(Value x) { return is_float(x.dtype()) ? x : cast(x, DType::f32); }

}  // namespace tutti::onnx
