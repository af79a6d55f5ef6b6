// Sources of batches that Python passes as new arrays for every step.
#pragma once
#include <fmt/format.h>

#include <cstring>

#include "core/base/status.h"
#include "data/source.h"
#include "module.h"

namespace tutti::python {

using data::Source;
using Arrays = std::map<std::string, Array>;

/// Arrays that Python passes anew for every step, read in place. Limits that the trainer checks on the first arrays are
/// checked on all later ones.
class ArraySource : public Source {
 public:
  void check_within(const std::string& column, const Limit& limit) const override {
    check(column, limit);
    limits_[column] = limit;
  }

 protected:
  using Source::Source;
  /// Throws Error(invalid) if integers violate the limits; the previous arrays are then kept.
  void replace(std::map<std::string, HostView> views, const Arrays& columns) {
    std::swap(views_, views);
    try {
      for (const auto& [column, limit] : limits_) check(column, limit);
    } catch (...) {
      std::swap(views_, views);
      throw;
    }
    kept_ = columns;
  }
  std::map<std::string, HostView> views_;

 private:
  /// Reports rows of the array, which are the batch's samples.
  void check(const std::string& column, const Limit& limit) const {
    const HostView& v = views_.at(column);
    const auto* x = static_cast<const int32_t*>(v.data);
    int64_t n = num_elements(v.type.shape), rows = v.type.shape.empty() ? 1 : v.type.shape[0];
    for (int64_t i = 0; i < n; ++i)
      if (!limit.holds(x[i])) {
        Error e = data::outside(column, x[i], i / (n / rows), limit);
        if (limit.why.empty()) throw OutOfRange(e);  // an index, not a number that is too large to compute with
        throw e;
      }
  }
  mutable std::map<std::string, Limit> limits_;
  Arrays kept_;
};

/// A batch that Python passes anew for every step: a single sample, whose columns are whole arrays of any shape.
class BatchSource : public ArraySource {
 public:
  BatchSource(const std::string& name, const Arrays& columns) : ArraySource(name) { set(columns); }
  /// Sets the next batch, with the same columns. Throws Error(invalid) if one has another type or violates a limit.
  void set(const Arrays& columns) {
    std::map<std::string, HostView> views = views_;
    for (const auto& [column, array] : columns) {
      HostView v = view(array);
      auto it = views_.find(column);
      if (it != views_.end() && it->second.type != v.type)
        throw invalid(
            fmt::format("'{}' is {}, the step was built for {}", column, to_string(v.type), to_string(it->second.type)),
            "hand in batches of one size and dtype, or build another step");
      views[column] = std::move(v);
    }
    replace(std::move(views), columns);
  }
  int64_t size() const override { return 1; }
  std::vector<data::Column> columns() const override {
    std::vector<data::Column> all;
    for (const auto& [column, v] : views_) all.push_back({.name = column, .type = v.type});
    return all;
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    const HostView& v = views_.at(column);
    for (size_t i = 0; i < samples.size() && v.bytes; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * v.bytes, v.data, v.bytes);
  }
};

/// The rows of a batch as samples; Python passes a new batch for every step.
class RowSource : public ArraySource {
 public:
  RowSource(const std::string& name, const Arrays& columns) : ArraySource(name) { set(columns); }
  /// Sets the next batch, with the same columns and types. Throws Error(invalid) if they differ, or if integers violate
  /// the limits that the model's task has set; the previous batch is then kept.
  void set(const Arrays& columns) {
    std::map<std::string, HostView> views;
    for (const auto& [column, array] : columns) {
      HostView v = view(array);
      if (v.type.shape.empty() || v.type.shape[0] == 0)
        throw invalid(fmt::format("column '{}' of a batch has no samples", column),
                      "the first dimension of an array are the samples");
      views[column] = std::move(v);
    }
    if (views.empty()) throw invalid("a batch without a column");
    for (const auto& [column, v] : views) {
      if (v.type.shape[0] != views.begin()->second.type.shape[0])
        throw invalid(fmt::format("a batch of {} samples in '{}' and {} in '{}'", views.begin()->second.type.shape[0],
                                  views.begin()->first, v.type.shape[0], column),
                      "every column has a row for every sample");
      auto it = views_.find(column);
      if (!views_.empty() && (it == views_.end() || it->second.type != v.type))
        throw invalid(fmt::format("column '{}' of a batch is {}, that of the batches before was {}", column,
                                  to_string(v.type), it == views_.end() ? "missing" : to_string(it->second.type)),
                      "hand in batches of the same columns and dtypes");
    }
    for (const auto& [column, v] : views_)
      if (!views.contains(column)) throw invalid(fmt::format("a batch lacks the column '{}' of those before", column));
    replace(std::move(views), columns);
  }
  int64_t size() const override { return views_.begin()->second.type.shape[0]; }
  std::vector<data::Column> columns() const override {
    std::vector<data::Column> all;
    for (const auto& [column, v] : views_) {
      data::Column c{.name = column, .type = v.type};
      c.type.shape.erase(c.type.shape.begin());
      all.push_back(std::move(c));
    }
    return all;
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    const HostView& v = views_.at(column);
    size_t row = v.bytes / static_cast<size_t>(size());
    for (size_t i = 0; i < samples.size() && row; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * row,
                  static_cast<const std::byte*>(v.data) + static_cast<size_t>(samples[i]) * row, row);
  }
};

}  // namespace tutti::python
