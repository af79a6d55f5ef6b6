// Recurrences. A frame computes the product of states and weights and passes it to the text of a cell: on CPUs in one
// launch for all steps, on GPUs in one launch per step, elsewhere after a separate product per step.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

/// Definition of one kind of recurrence or its gradient.
struct Kind {
  const char* cell;  ///< the text of a cell
  int64_t gates;
  bool gradient;                             ///< runs from the last step to the first, with transposed weights
  std::vector<const char*> inputs, results;  ///< in the caller's order, before `lengths`
  /// Scratch [rows, cells], and the input with its initial values.
  std::vector<std::pair<const char*, const char*>> starts;
  std::pair<std::string, std::string> in_place = {};  ///< the input, and the result that may overwrite it
};

const Kind lstm_kind = {
    "lstm_cell",   4, false, {"h0", "c0", "w", "z"}, {"y", "c_n", "gates", "cells"}, {{"state", "h0"}, {"c", "c0"}},
    {"z", "gates"}};
const Kind lstm_dx_kind = {"lstm_dx_cell",
                           4,
                           true,
                           {"c0", "w", "gates", "cells", "dy", "dc_n"},
                           {"dh0", "dc0", "dz"},
                           {{"dc", "dc_n"}, {"carry", ""}},
                           {"gates", "dz"}};
const Kind gru_kind = {"gru_cell", 3, false, {"h0", "w", "b_hh", "z"}, {"y", "gates"}, {{"state", "h0"}}};
const Kind gru_dx_kind = {"gru_dx_cell",  3, true, {"h0", "w", "gates", "y", "dy"}, {"dh0", "dz", "dp"},
                          {{"carry", ""}}};

/// Plans the launches of one recurrence.
class Planned {
 public:
  Planned(const Target& t, const Recurrence& r, const Kind& kind)
      : t_(t),
        r_(r),
        kind_(kind),
        depth_(kind.gradient ? kind.gates * r.cells : r.cells),
        turns_(r.steps + (kind.gradient ? 1 : 0)) {
    int number = 0;
    for (const char* name : kind.inputs) numbers_[name] = number++;
    if (r.lengths) numbers_["lengths"] = number++;
    for (size_t k = 0; k < kind.results.size(); ++k)
      if (r.wanted.at(k)) numbers_[kind.results[k]] = number++;
    scratch_at_ = number;
    if (r.in_place) numbers_.erase(kind.in_place.first);
  }

  LaunchList panels() &&;
  LaunchList steps() &&;
  LaunchList products() &&;

 private:
  void scratch(const std::string& name, int64_t elements) {
    numbers_[name] = scratch_at_ + static_cast<int>(list_.scratch_bytes.size());
    list_.scratch_bytes.push_back(static_cast<uint64_t>(elements) * 4);
  }

  void add(LaunchList work, std::vector<int> buffers) {
    work.launches.at(0).buffers = std::move(buffers);
    list_.launches.push_back(std::move(work.launches[0]));
  }

  /// Initializes scratch `name` with n f32 numbers of the input `from`, or zeros if `from` is empty.
  void start(const std::string& name, const std::string& from, int64_t n) {
    if (from.empty()) return add(fill(t_, DType::f32, n, 0), {numbers_[name]});
    auto type = static_cast<uint16_t>(r_.dtype);
    const TuttiInstr code[] = {
        {TUTTI_X_INPUT, type, 0, 0, 0}, {TUTTI_X_CAST, TUTTI_F32, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_F32, 1, 0, 0}};
    const Operand in[] = {{r_.dtype, {1}}};
    const DType out[] = {DType::f32};
    add(elementwise(t_, code, {n}, in, out, false), {numbers_[from], numbers_[name]});
  }

  /// Initializes `states` copies of the state, and other values carried between steps.
  void start_all(int64_t states) {
    scratch("state", states * r_.rows * depth_);
    for (auto [name, from] : kind_.starts) {
      if (!numbers_.contains(name)) scratch(name, r_.rows * r_.cells);
      start(name, from, r_.rows * r_.cells);
    }
  }

  void start_counting() {
    scratch("now", 1);
    scratch("later", 1);
    add(fill(t_, DType::i32, 1, 0), {numbers_["now"]});
  }

  /// Adds the launch of one turn and prepares the next one to read the turn number that it writes.
  void add_turn(Launch& turn) {
    list_.launches.push_back(turn);
    int now = numbers_["now"], later = numbers_["later"];
    for (int& b : turn.buffers) b = b == now ? later : b == later ? now : b;
  }

  Kernel framed(const char* frame) const;
  std::vector<int> buffers_of(Kernel& k) const;

  const Target& t_;
  const Recurrence& r_;
  const Kind& kind_;
  int64_t depth_, turns_;
  std::map<std::string, int> numbers_;  // buffer numbers by name
  int scratch_at_ = 0;
  LaunchList list_;
};

/// The frame with the cell's text and the values of both.
Kernel Planned::framed(const char* frame) const {
  const std::map<std::string, Element> types = {{"T", element_of(r_.dtype)}};
  Kernel k = portable(frame, types), cell = portable(kind_.cell, types);
  k.name = fmt::format("{} {}", kind_.cell, frame);
  std::replace(k.name.begin(), k.name.end(), ' ', '_');
  k.params.insert(k.params.end(), cell.params.begin(), cell.params.end());
  for (auto& [name, none] : cell.values)
    if (!k.takes(name)) k.values.emplace_back(name, none);
  k.body.replace(k.body.find("CELL\n"), 5, "\n" + cell.body);
  const std::string forward = kind_.gradient ? fmt::format("({} - turn)", r_.steps - 1) : "turn";
  const std::string backward = kind_.gradient ? "turn" : fmt::format("({} - turn)", r_.steps - 1);
  k.set("N", r_.rows);
  k.set("H", r_.cells);
  k.set("K", depth_);
  k.set("LAST", turns_ - 1);
  k.set("FIRST", r_.steps - 1);
  k.set("PLACE", r_.reverse ? backward : forward);
  k.set("DEPTH", kind_.gradient ? "(turn == 0 ? 0 : K)" : "K");  // the first cotangent is only dy
  k.set("EARLIER", r_.reverse ? "N * H" : "-N * H");
  k.set("LIVE", r_.lengths ? "(t < lengths(row))" : "true");
  k.elements = static_cast<uint64_t>(std::max(r_.steps, int64_t{2}) * r_.rows * 4 * r_.cells);
  return k;
}

/// The buffers of the kernel's parameters, without unused results and without an input that a result overwrites.
std::vector<int> Planned::buffers_of(Kernel& k) const {
  std::vector<int> buffers;
  std::erase_if(k.params, [&](const Param& p) {
    bool absent = !numbers_.contains(p.name);
    if (r_.in_place && p.name == kind_.in_place.first) k.set(p.name + "(i)", kind_.in_place.second + "(i)");
    if (absent && p.written) k.set(p.name + "_set(i, v)", "{}");
    return absent;
  });
  for (const Param& p : k.params) buffers.push_back(numbers_.at(p.name));
  return buffers;
}

LaunchList Planned::panels() && {
  start_all(1);
  constexpr int64_t wide = 16, registers = 24;
  int64_t count = ceil_div(r_.cells, wide), gates = kind_.gradient ? 1 : kind_.gates;
  int64_t vectors = kind_.gradient ? std::min<int64_t>(count, 4) : gates;

  // Packs each gate [cells, K], or the weights [K, cells], into panels of 16 cells.
  scratch("panels", gates * count * depth_ * wide);
  Kernel pack = portable("matmul_pack", {{"T", element_of(r_.dtype)}});
  pack.set("N", r_.cells);
  pack.set("K", depth_);
  pack.set("BATCHES", gates);
  pack.set("PANELS", count);
  pack.set("WIDE", wide);
  pack.set("ROW", kind_.gradient ? r_.cells : 1);
  pack.set("COLUMN", kind_.gradient ? 1 : depth_);
  pack.set("B_BASE(g)", fmt::format("((g) * {})", r_.cells * depth_));
  pack.elements = static_cast<uint64_t>(gates * count * depth_ * wide);
  uint64_t packed = pack.elements;
  list_.launches.push_back(
      dispatch_items(t_, std::move(pack), gates * count * depth_, {numbers_["w"], numbers_["panels"]}));

  int64_t rows = ceil_div(r_.rows, ceil_div(r_.rows, registers / vectors)), blocks = ceil_div(r_.rows, rows);
  int64_t together = std::clamp<int64_t>(blocks / (int64_t{2} * t_.compute_units), 1, 4);
  scratch("sums", r_.rows * gates * count * wide);
  Kernel k = framed("recurrence_panels");
  k.set("TURNS", turns_);
  k.set("ROWS", rows);
  k.set("VECTORS", vectors);
  k.set("BLOCKS", together);
  // A vector is 16 cells of one gate, or one of several adjacent vectors.
  k.set("PANELS", kind_.gradient ? ceil_div(count, vectors) : count);
  std::string panel = !kind_.gradient ? fmt::format("((v) * {} + panel)", count)
                      : count % vectors == 0
                          ? fmt::format("(panel * {} + (v))", vectors)
                          : fmt::format("(panel * {0} + (v) < {1} ? panel * {0} + (v) : {1} - 1)", vectors, count);
  k.set("PANEL(v)", panel);
  k.set("SUM_PANELS", gates * count);
  k.set("SPLAT(s)", t_.language->splat16);
  k.set("SUM(g)", fmt::format("sums((IDX(row) * {} + (g)) * {} + j)", gates, count * wide));
  k.elements = std::max(k.elements, packed);
  std::vector<int> buffers = buffers_of(k);
  list_.launches.push_back(dispatch(t_, std::move(k), static_cast<uint64_t>(ceil_div(blocks, together)), buffers));
  return std::move(list_);
}

LaunchList Planned::steps() && {
  start_all(2);  // double buffering: a group writes one copy while others still read the other
  start_counting();
  int64_t gates = kind_.gradient ? 1 : kind_.gates, tiles = ceil_div(r_.cells, 16);
  Kernel k = framed("recurrence_steps");
  k.set("GATES", gates);
  k.set("TILES", tiles);
  k.set("ALONG_K", kind_.gradient ? "false" : "true");
  k.set("W_AT(g,cell,k)", kind_.gradient ? "(IDX(k) * H + (cell))" : "((IDX(g) * H + (cell)) * K + (k))");
  k.set("SUM(g)", "sums[g]");
  k.elements = std::max(k.elements, static_cast<uint64_t>(kind_.gates * r_.cells * r_.cells));
  std::vector<int> buffers = buffers_of(k);
  Launch turn = dispatch(t_, std::move(k), static_cast<uint64_t>(tiles * ceil_div(r_.rows, 16)), buffers);
  for (int64_t n = 0; n < turns_; ++n) add_turn(turn);
  return std::move(list_);
}

LaunchList Planned::products() && {
  start_all(1);
  start_counting();
  int64_t columns = kind_.gradient ? r_.cells : kind_.gates * r_.cells;
  scratch("sums", r_.rows * columns);
  std::string w = "w";
  if (r_.dtype != DType::f32) {
    w = "wide_w";
    scratch(w, depth_ * columns);
    start(w, "w", depth_ * columns);
  }
  LaunchList product = matmul(t_, {DType::f32, r_.rows, columns, depth_, false, !kind_.gradient});
  std::vector<int> operands = {numbers_["state"], numbers_[w], numbers_["sums"]};
  for (uint64_t bytes : product.scratch_bytes) {
    operands.push_back(scratch_at_ + static_cast<int>(list_.scratch_bytes.size()));
    list_.scratch_bytes.push_back(bytes);
  }
  for (Launch& l : product.launches)
    for (int& b : l.buffers) b = operands.at(static_cast<size_t>(b));
  auto uses = [](const Launch& l, int buffer) { return std::ranges::find(l.buffers, buffer) != l.buffers.end(); };
  auto packs_weights = [&](const Launch& l) {
    return uses(l, operands[1]) && !uses(l, operands[0]) && !uses(l, operands[2]);
  };
  // Weights are packed only once.
  std::ranges::copy_if(product.launches, std::back_inserter(list_.launches), packs_weights);
  std::erase_if(product.launches, packs_weights);
  Kernel k = framed("recurrence_cells");
  k.set("SUM(g)", fmt::format("sums(IDX(row) * {} + (g) * H + j)", columns));
  std::vector<int> buffers = buffers_of(k);
  Launch turn = dispatch_items(t_, std::move(k), r_.rows * r_.cells, buffers);
  for (int64_t n = 0; n < turns_; ++n) {
    if (n == 0 && kind_.gradient)
      start("sums", "", r_.rows * columns);  // the first cotangent is only dy
    else
      list_.launches.insert(list_.launches.end(), product.launches.begin(), product.launches.end());
    add_turn(turn);
  }
  return std::move(list_);
}

LaunchList planned(const Target& t, const Recurrence& r, const Kind& kind) {
  if (!is_float(r.dtype))
    throw Error(Code::declined, fmt::format("a recurrence of dtype {} is not supported", name(r.dtype)));
  element_of(r.dtype);
  if (std::none_of(r.wanted.begin(), r.wanted.end(), [](bool w) { return w; }) || r.rows * r.cells == 0) return {};
  Planned p(t, r, kind);
  if (t.cpu_like && t.language->float16()) return std::move(p).panels();
  bool groups = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384;
  return groups ? std::move(p).steps() : std::move(p).products();
}

}  // namespace

LaunchList lstm(const Target& t, const Recurrence& r) { return planned(t, r, lstm_kind); }
LaunchList lstm_dx(const Target& t, const Recurrence& r) { return planned(t, r, lstm_dx_kind); }
LaunchList gru(const Target& t, const Recurrence& r) { return planned(t, r, gru_kind); }
LaunchList gru_dx(const Target& t, const Recurrence& r) { return planned(t, r, gru_dx_kind); }

}  // namespace tutti::codegen
