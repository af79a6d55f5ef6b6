#include "verify/parity/huge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "core/base/host_memory.h"
#include "core/base/status.h"
#include "graph/ops/add.h"
#include "graph/ops/argmax.h"
#include "graph/ops/cast.h"
#include "graph/ops/gather.h"
#include "graph/ops/slice.h"
#include "graph/ops/sum.h"
#include "graph/ops/transpose.h"
#include "train/run/reference.h"

namespace tutti::parity {
namespace {

constexpr int64_t columns = 1024, limit = int64_t{1} << 31;

/// big[r][c] = r % rows_period + c % 13, made on the device from a column and a row.
struct Big {
  DType dtype = DType::f32;
  int64_t rows_period = 4093;
  int64_t rows() const { return limit / columns / static_cast<int64_t>(size_of(dtype)) + 3; }
  double at(int64_t r, int64_t c) const { return static_cast<double>(r % rows_period + c % 13); }
  TensorType type() const { return {dtype, {rows(), columns}}; }
  uint64_t bytes() const { return num_bytes(type()); }
};

/// A small value computed from the big one for the host to read, and the expected value of its element [i][j].
struct Probe {
  Value value;
  std::function<double(int64_t i, int64_t j)> want;
};

using Probes = std::vector<Probe>;

/// Rows around offsets of 2^31 bytes or elements, and the first and last rows.
std::vector<int64_t> interesting(const Big& b) { return {0, b.rows() / 2 - 1, b.rows() - 4, b.rows() - 1}; }

Probes read_slices(const Big& b, Value big) {
  Probes probes;
  for (int64_t r : interesting(b)) {
    int64_t end = std::min(r + 2, b.rows());
    probes.push_back({cast(slice(big, {r, 0}, {end, columns}), DType::f32),
                      [b, r](int64_t i, int64_t j) { return b.at(r + i, j); }});
  }
  return probes;
}

Probes read_sums(const Big& b, Value big) {
  auto by_row = [b](int64_t, int64_t r) {
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += b.at(r, c);
    return sum;
  };
  auto by_column = [b](int64_t, int64_t c) {
    double sum = 0;
    for (int64_t r = 0; r < b.rows(); ++r) sum += b.at(r, c);
    return sum;
  };
  return {{sum(big, {1}), by_row}, {sum(big, {0}), by_column}};
}

Probes read_gathered(const Big& b, Value big) {
  std::vector<int64_t> rows = interesting(b);
  std::vector<int32_t> index(rows.begin(), rows.end());
  std::vector<std::byte> bytes(index.size() * sizeof(int32_t));
  std::copy_n(reinterpret_cast<const std::byte*>(index.data()), bytes.size(), bytes.data());
  Value at = big.graph().constant({DType::i32, {static_cast<int64_t>(index.size())}}, std::move(bytes));
  return {{gather(big, at), [b, rows](int64_t i, int64_t j) { return b.at(rows[static_cast<size_t>(i)], j); }}};
}

/// The first maximum is in the last row of the first period, at the last column of the first period.
Probes read_argmax(const Big& b, Value big) {
  auto in_all = [b](int64_t, int64_t) { return static_cast<double>((b.rows_period - 1) * columns + 12); };
  auto in_column = [b](int64_t, int64_t) { return static_cast<double>(b.rows_period - 1); };
  return {{cast(argmax(big), DType::f32), in_all}, {cast(argmax(big, {0}), DType::f32), in_column}};
}

/// Probes of the transposed tensor.
Probes read_transposed(const Big& b, Value turned) {
  Probes probes;
  for (int64_t c : {int64_t{0}, columns / 2 - 1, columns - 1})
    for (int64_t r : interesting(b)) {
      int64_t end = std::min(r + 2, b.rows());
      probes.push_back({slice(turned, {c, r}, {c + 1, end}), [b, c, r](int64_t, int64_t j) { return b.at(r + j, c); }});
    }
  return probes;
}

struct HugeCase {
  std::string_view op;
  size_t sample;
  Big big;
  bool transposed = false;
  Probes (*read)(const Big&, Value);
};

const std::array<HugeCase, 7>& cases() {
  static const std::array<HugeCase, 7> all = {
      HugeCase{"add", 0, {}, false, read_slices}, {"add", 1, {DType::u8, 199}, false, read_slices},
      {"argmax", 0, {}, false, read_argmax},      {"gather", 0, {}, false, read_gathered},
      {"slice", 0, {}, false, read_slices},       {"sum", 0, {DType::f32, 2}, false, read_sums},
      {"transpose", 0, {}, true, read_transposed}};
  return all;
}

const HugeCase* find(const OpDef& op, size_t sample) {
  auto it = std::find_if(cases().begin(), cases().end(),
                         [&](const HugeCase& c) { return c.op == op.name && c.sample == sample; });
  return it == cases().end() ? nullptr : it;
}

/// Adds nodes that create the state "big"; returns the feeds.
Tensors make(const HugeCase& c, Graph& g) {
  int64_t rows = c.big.rows();
  Tensors feeds = {{"row", Tensor({DType::i32, {rows, 1}})}, {"column", Tensor({DType::i32, {1, columns}})}};
  for (int64_t r = 0; r < rows; ++r) feeds.at("row").at[static_cast<size_t>(r)] = double(r % c.big.rows_period);
  for (int64_t k = 0; k < columns; ++k) feeds.at("column").at[static_cast<size_t>(k)] = double(k % 13);
  Value row = g.feed("row", feeds.at("row").type), column = g.feed("column", feeds.at("column").type);
  g.set_state("big", cast(row, c.big.dtype) + cast(column, c.big.dtype));
  return feeds;
}

std::string difference(const Tensor& got, const Probe& probe) {
  int64_t width = got.shape().empty() ? 1 : got.shape().back();
  for (size_t e = 0; e < got.at.size(); ++e) {
    double want = probe.want(static_cast<int64_t>(e) / width, static_cast<int64_t>(e) % width);
    if (got.at[e] != want) return fmt::format("element {} is {}, expected {}", e, got.at[e], want);
  }
  return {};
}

}  // namespace

bool has_huge(const OpDef& op, size_t sample) { return find(op, sample) != nullptr; }

CaseResult run_huge(const Device& device, const CaseId& id) {
  const HugeCase& c = *find(*id.op, id.sample);
  CaseResult result{.id = id};
  auto no_room = [&](std::string why) {
    result.outcome = Outcome::no_room;
    result.why = std::move(why);
    return result;
  };
  uint64_t need = c.big.bytes() * (c.transposed ? 2 : 1), slack = uint64_t{1} << 30;
  if (is_reference(device)) return no_room("the reference backend keeps every element in 8 bytes, more than once");
  bool on_host = device.kind == DeviceKind::cpu || device.kind == DeviceKind::software;
  if (uint64_t left = host_memory_left(); on_host && left < need + slack)
    return no_room(fmt::format("needs {} bytes of memory, but the machine has only {} free", need + slack, left));
  try {
    Session session(device);
    Graph maker;
    Tensors feeds = make(c, maker);
    DeviceProgram(session, maker).step(feeds);
    if (c.transposed) {
      Graph turner;
      turner.set_state("turned", transpose(turner.state("big", c.big.type()), {1, 0}));
      DeviceProgram(session, turner).step({});
    }
    Graph reader;
    Value big = c.transposed ? reader.state("turned", {c.big.dtype, {columns, c.big.rows()}})
                             : reader.state("big", c.big.type());
    Probes probes = c.read(c.big, big);
    for (size_t k = 0; k < probes.size(); ++k) reader.set_state(fmt::format("probe{}", k), probes[k].value);
    DeviceProgram program(session, reader);
    program.step({});
    for (size_t k = 0; k < probes.size(); ++k) {
      std::string wrong = difference(program.read(fmt::format("probe{}", k)), probes[k]);
      if (wrong.empty()) continue;
      result.outcome = Outcome::fail;
      result.why += fmt::format("{}probe {}: {}", result.why.empty() ? "" : "; ", k, wrong);
    }
  } catch (const Error& e) {
    if (e.code != Code::no_memory && e.code != Code::declined) throw;
    return no_room(e.what());
  }
  return result;
}

}  // namespace tutti::parity
