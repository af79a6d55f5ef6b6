#include "train/task/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sub.h"

namespace tutti {
namespace {

constexpr const char* reserved[] = {"indices", "valid", "lr"};  // names of a program's own feeds

TensorType batched(const TensorType& sample, int64_t n) {
  TensorType t = sample;
  t.shape.insert(t.shape.begin(), n);
  return t;
}

/// The first table row of each sample, or all rows of its window: i32 [n] or [n, length].
Value rows_of(const data::Column& c, Value indices) {
  Value first = c.stride == 1 ? indices : indices * indices.like(static_cast<double>(c.stride));
  if (c.offset != 0) first = first + first.like(static_cast<double>(c.offset));
  if (!c.window) return first;
  Value place = iota(indices.graph(), {1, c.type.shape[0]}, 1);
  return reshape(first, {indices.shape()[0], 1}) + place;
}

}  // namespace

InputLayout layout_of(const data::Source& source, const std::string& name, bool resident) {
  InputLayout form{.name = name, .columns = source.columns(), .tables = {}, .resident = resident};
  for (const data::Table& t : source.tables()) form.tables.emplace(t.name, t.type);
  for (const data::Column& c : form.columns)
    for (const char* own : reserved)
      if (c.name == own)
        throw invalid(fmt::format("data set {}: column name '{}' is reserved", source.name, own), "rename the column");
  return form;
}

std::string InputLayout::table_state(const std::string& table) const {
  return fmt::format("data.{}.{}.{}", name, table, to_string(tables.at(table)));
}

std::string InputLayout::key() const {
  std::string text = name;
  for (const data::Column& c : columns) {
    text += fmt::format(".{} {} {}", c.name, to_string(c.type), c.classes);
    if (resident && !c.table.empty())
      text += fmt::format(" {} {} {} {}", table_state(c.table), c.window, c.stride, c.offset);
  }
  return text;
}

Batch::Batch(Graph& graph, const InputLayout& form, int64_t size, bool partial)
    : graph_(graph), form_(form), size_(size) {
  if (form.resident) indices_ = graph.feed("indices", {DType::i32, {size}});
  if (partial) valid_ = less(iota(graph, {size}, 0), graph.feed("valid", {DType::i32, {}}));
}

const data::Column& Batch::column(const std::string& wanted) const {
  std::vector<std::string> names;
  for (const data::Column& c : form_.columns) {
    if (c.name == wanted) return c;
    names.push_back(c.name);
  }
  throw invalid(fmt::format("the data has no column '{}'", wanted), "its columns are " + alternatives(names));
}

std::string Batch::data_name() const { return "data set " + form_.name; }

const std::vector<double>& Batch::class_weights() const {
  weighed_ = true;
  return form_.class_weights;
}

const nn::Mixup* Batch::mixup() const {
  mixed_ = mixup_.has_value();
  return mixup_ ? &*mixup_ : nullptr;
}

bool Batch::has(const std::string& wanted) const {
  return std::ranges::any_of(form_.columns, [&](const data::Column& c) { return c.name == wanted; });
}

Value Batch::operator[](const std::string& wanted) const {
  const data::Column& c = column(wanted);
  auto [it, fresh] = columns_.try_emplace(wanted);
  if (!fresh) return it->second;
  Graph::Scope scope(graph_, "data");
  if (form_.resident && !c.table.empty()) {
    Value table = graph_.state(form_.table_state(c.table), form_.tables.at(c.table), StateRole::data);
    return it->second = gather(table, rows_of(c, indices_), 0);
  }
  return it->second = graph_.feed(wanted, batched(c.type, size_));
}

Value Batch::standardised(const std::string& wanted) const {
  const data::Column& c = column(wanted);
  Value x = (*this)[wanted];
  return c.mean.empty() ? x : (x - numbers(c, c.mean, x.dtype())) / numbers(c, c.deviation, x.dtype());
}

Value Batch::numbers(const data::Column& c, const std::vector<double>& of, DType dtype) const {
  return reshape(graph_.constant(dtype, of), batched(c.type, 1).shape);
}

Value Batch::class_ids(const std::string& wanted, int64_t limit, std::optional<int64_t> except) const {
  const data::Column& c = column(wanted);
  if (c.type.dtype != DType::i32)
    throw invalid(fmt::format("{}: column '{}' is {}, but the task needs i32 class indices", data_name(), wanted,
                              to_string(c.type)),
                  "save it as integers: array.astype(np.int64)");
  Limit own{.end = limit, .except = except};
  auto [it, fresh] = limits_.try_emplace(wanted, own);
  if (!fresh) it->second = it->second & own;
  return (*this)[wanted];
}

void Batch::exact(const std::string& what, size_t first, const Values& results, double low, double high) const {
  exact_.push_back({what, first, graph_.values().size(), results, low, high});
}

Value Batch::weights(DType dtype) const { return valid_ ? cast(valid_, dtype) : graph_.full(dtype, 1, {size_}); }

}  // namespace tutti
