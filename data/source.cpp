#include "data/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/hash.h"
#include "core/base/shape.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::data {
namespace {

const Table* find_table(const std::vector<Table>& tables, const std::string& name) {
  for (const Table& t : tables)
    if (t.name == name) return &t;
  return nullptr;
}

}  // namespace

uint64_t Source::Identity::next() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

Column Source::column(const std::string& wanted) const {
  std::vector<std::string> names;
  for (Column& c : columns()) {
    if (c.name == wanted) return std::move(c);
    names.push_back(c.name);
  }
  throw invalid(fmt::format("data set {} has no column '{}'", name, wanted), "its columns are " + alternatives(names));
}

uint64_t Source::table_bytes() const {
  uint64_t bytes = 0;
  for (const Table& t : tables()) bytes += num_bytes(t.type);
  return bytes;
}

void Source::read(const std::string& wanted, std::span<const int32_t> samples, void* to) const {
  Column c = column(wanted);
  std::vector<Table> all = tables();
  const Table* table = find_table(all, c.table);
  if (!table)
    throw Error(Code::internal,
                fmt::format("data set {}: column '{}' has neither a table nor a read function", name, wanted));
  size_t bytes = num_bytes(c.type);
  size_t row = c.window ? bytes / static_cast<size_t>(c.type.shape[0]) : bytes;
  auto* at = static_cast<std::byte*>(to);
  for (int32_t i : samples) {
    std::memcpy(at, table->data + static_cast<size_t>(c.offset + i * c.stride) * row, bytes);
    at += bytes;
  }
}

void Source::check() const {
  if (size() < 1) throw invalid(fmt::format("data set {} has no samples", name));
  if (size() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("data set {} has {} samples; the maximum is 2^31 - 1", name, size()));
  std::vector<Table> all = tables();
  for (const Column& c : columns()) {
    if (c.table.empty()) continue;
    const Table* table = find_table(all, c.table);
    Shape row = c.type.shape;
    int64_t rows = c.window ? row.at(0) : 1;
    if (c.window) row.erase(row.begin());
    if (!table)
      throw invalid(
          fmt::format("data set {}: column '{}' names a table that the data set does not have", name, c.name));
    if (table->type.dtype != c.type.dtype || table->type.shape.empty() ||
        Shape(table->type.shape.begin() + 1, table->type.shape.end()) != row)
      throw invalid(fmt::format("data set {}: column '{}' has type {}, which does not match its table '{}' of type {}",
                                name, c.name, to_string(c.type), table->name, to_string(table->type)));
    if (c.offset < 0 || c.offset + (size() - 1) * c.stride + rows > table->type.shape[0])
      throw invalid(fmt::format("data set {}: column '{}' needs {} rows for {} samples, but its table has {}", name,
                                c.name, c.offset + (size() - 1) * c.stride + rows, size(), table->type.shape[0]));
  }
}

Error outside(const std::string& place, int64_t x, int64_t sample, const Limit& limit) {
  std::string text = fmt::format("{} {} of sample {} is outside {}", place, x, sample, to_string(limit));
  if (!limit.why.empty()) return invalid(fmt::format("{}: {}", text, limit.why), "use smaller numbers");
  return invalid(
      text, limit.low < 0 ? "check the data" : "numbering starts at 0; check the data, or give the model more outputs");
}

void Source::check_within(const std::string& wanted, const Limit& limit) const {
  Column c = column(wanted);
  if (c.type.dtype != DType::i32)
    throw invalid(
        fmt::format("data set {}: column '{}' is {}, but the task needs i32 numbers", name, wanted, to_string(c.type)));
  auto each = static_cast<size_t>(num_elements(c.type.shape));
  constexpr int64_t at_once = 1024;
  std::vector<int32_t> samples, values;
  for (int64_t first = 0; first < size(); first += at_once) {
    samples.resize(static_cast<size_t>(std::min(at_once, size() - first)));
    std::iota(samples.begin(), samples.end(), static_cast<int32_t>(first));
    values.resize(samples.size() * each);
    read(wanted, samples, values.data());
    for (size_t k = 0; k < values.size(); ++k)
      if (!limit.holds(values[k]))
        throw outside(fmt::format("data set {}: {}", name, wanted), values[k], samples[k / each], limit);
  }
}

std::vector<std::string> classes_in(const std::string& vocabulary) {
  auto all = nlohmann::json::parse(vocabulary, nullptr, false);
  for (const char* key : {"classes", "labels"})  // of images, of a table
    if (all.is_object() && all.contains(key)) {
      nlohmann::json names = all[key];
      all = std::move(names);
    }
  bool names = all.is_array() && std::ranges::all_of(all, [](const auto& x) { return x.is_string(); });
  return names ? all.get<std::vector<std::string>>() : std::vector<std::string>();
}

std::string fingerprint(const Source& set) {
  constexpr int64_t looked_at = 16;
  uint64_t h = fnv1a(nullptr, 0);
  for (const Column& column : set.columns()) {
    std::vector<std::byte> sample(num_bytes(column.type));
    for (int64_t k = 0; k < looked_at; ++k) {
      auto at = static_cast<int32_t>(k * (set.size() - 1) / (looked_at - 1));
      set.read(column.name, std::span(&at, 1), sample.data());
      h = fnv1a(sample.data(), sample.size(), h);
    }
  }
  return fmt::format("{:016x}", h);
}

}  // namespace tutti::data
