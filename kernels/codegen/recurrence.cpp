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
  std::vector<const char*> ends;  ///< inputs and results [rows, cells] of the first or last turn alone
  std::pair<std::string, std::string> in_place = {};  ///< the input, and the result that may overwrite it
};

const Kind lstm_kind = {"lstm_cell",
                        4,
                        false,
                        {"h0", "c0", "w", "z"},
                        {"y", "c_n", "gates", "cells"},
                        {{"state", "h0"}, {"c", "c0"}},
                        {"c_n"},
                        {"z", "gates"}};
const Kind lstm_dx_kind = {"lstm_dx_cell",
                           4,
                           true,
                           {"c0", "w", "gates", "cells", "dy", "dc_n"},
                           {"dh0", "dc0", "dz"},
                           {{"dc", "dc_n"}, {"carry", ""}},
                           {"c0", "dh0", "dc0"},
                           {"gates", "dz"}};
const Kind gru_kind = {"gru_cell", 3, false, {"h0", "w", "b_hh", "z"}, {"y", "gates"}, {{"state", "h0"}}, {}};
const Kind gru_dx_kind = {"gru_dx_cell", 3, true, {"h0", "w", "gates", "y", "dy"}, {"dh0", "dz", "dp"}, {{"carry", ""}},
                          {"h0", "dh0"}};

/// Plans the launches of one recurrence. Folded, what a work-item reads and writes between turns is one buffer,
/// `carried`, and a launch between turns counts them: fewer buffers in a kernel, more launches.
class Planned {
 public:
  Planned(const Target& t, const Recurrence& r, const Kind& kind, bool folded)
      : t_(t),
        r_(r),
        kind_(kind),
        folded_(folded),
        depth_(kind.gradient ? kind.gates * r.cells : r.cells),
        turns_(r.steps + (kind.gradient ? 1 : 0)) {
    int number = 0;
    for (const char* name : kind.inputs) numbers_[name] = number++;
    if (r.lengths) numbers_["lengths"] = number++;
    for (size_t k = 0; k < kind.results.size(); ++k)
      if (r.wanted.at(k)) numbers_[kind.results[k]] = number++;
    scratch_at_ = number;
    if (r.in_place) numbers_.erase(kind.in_place.first);
    if (folded) buffer("carried", 0);
  }

  LaunchList panels() &&;
  LaunchList steps() &&;
  LaunchList products() &&;

 private:
  /// Scratch that is carried between turns: part of `carried` if folded.
  void scratch(const std::string& name, int64_t elements) {
    if (!folded_) return buffer(name, elements);
    places_[name] = carried_;
    carried_ += elements;
  }

  void buffer(const std::string& name, int64_t elements) {
    numbers_[name] = scratch_at_ + static_cast<int>(list_.scratch_bytes.size());
    list_.scratch_bytes.push_back(static_cast<uint64_t>(elements) * 4);
  }

  void add(LaunchList work, std::vector<int> buffers) {
    work.launches.at(0).buffers = std::move(buffers);
    list_.launches.push_back(std::move(work.launches[0]));
  }

  /// Initializes scratch `name` with n f32 numbers of the input `from`, or zeros if `from` is empty.
  void start(const std::string& name, const std::string& from, int64_t n) {
    if (auto place = places_.find(name); place != places_.end()) {
      if (!from.empty()) move(from, 0, element_of(r_.dtype), "carried", place->second, Element::f32, n);
      return;
    }
    if (from.empty()) return add(fill(t_, DType::f32, n, 0), {numbers_[name]});
    auto type = static_cast<uint16_t>(r_.dtype);
    const TuttiInstr code[] = {
        {TUTTI_X_INPUT, type, 0, 0, 0}, {TUTTI_X_CAST, TUTTI_F32, 0, 0, 0}, {TUTTI_X_RESULT, TUTTI_F32, 1, 0, 0}};
    const Operand in[] = {{r_.dtype, {1}}};
    const DType out[] = {DType::f32};
    add(elementwise(t_, code, {n}, in, out, false), {numbers_[from], numbers_[name]});
  }

  /// Copies n elements from place to place.
  void move(const std::string& from, int64_t from_place, Element from_type, const std::string& to, int64_t to_place,
            Element to_type, int64_t n) {
    Kernel k = portable("recurrence_move", {{"T", from_type}, {"Y", to_type}});
    k.set("N", n);
    k.set("FROM", from_place);
    k.set("TO", to_place);
    k.elements = static_cast<uint64_t>(std::max(from_place, to_place) + n);
    list_.launches.push_back(dispatch_items(t_, std::move(k), n, {numbers_.at(from), numbers_.at(to)}));
  }

  /// Initializes the state in `state`, and other values carried between steps.
  void start_all() {
    for (auto [name, from] : kind_.starts) {
      if (std::string(name) != "state") scratch(name, r_.rows * r_.cells);
      start(name, from, r_.rows * r_.cells);
    }
    if (!folded_) return;
    if (r_.lengths) {
      scratch("lengths", r_.rows);
      move("lengths", 0, Element::i32, "carried", places_["lengths"], Element::f32, r_.rows);
    }
    for (const char* name : kind_.ends) {
      if (!numbers_.contains(name)) continue;
      scratch(name, r_.rows * r_.cells);
      if (std::ranges::find(kind_.inputs, std::string(name)) != kind_.inputs.end())
        start(name, name, r_.rows * r_.cells);
    }
  }

  /// Zeroes `carried` before its first use, and copies the results of the last turn from it.
  void finish_carried() {
    if (!folded_) return;
    list_.scratch_bytes[static_cast<size_t>(numbers_["carried"] - scratch_at_)] = static_cast<uint64_t>(carried_) * 4;
    Launch zero = fill(t_, DType::f32, carried_, 0).launches.at(0);
    zero.buffers = {numbers_["carried"]};
    list_.launches.insert(list_.launches.begin(), std::move(zero));
    for (const char* name : kind_.ends)
      if (places_.contains(name) && std::ranges::find(kind_.results, std::string(name)) != kind_.results.end())
        move("carried", places_[name], Element::f32, name, 0, element_of(r_.dtype), r_.rows * r_.cells);
  }

  void start_counting() {
    scratch("now", 1);
    if (folded_) return;
    scratch("later", 1);
    add(fill(t_, DType::i32, 1, 0), {numbers_["now"]});
  }

  /// Adds the launch of one turn and prepares the next one to read the turn number that it writes.
  void add_turn(Launch& turn) {
    list_.launches.push_back(turn);
    if (folded_) {
      Kernel k = portable("recurrence_count");
      k.set("PLACE", places_.at("now"));
      k.elements = static_cast<uint64_t>(carried_);
      return list_.launches.push_back(dispatch(t_, std::move(k), 1, {numbers_["carried"]}));
    }
    int now = numbers_["now"], later = numbers_["later"];
    for (int& b : turn.buffers) b = b == now ? later : b == later ? now : b;
  }

  /// How the work-items of a group share the weights (recurrence_steps).
  struct StepForm {
    int64_t columns, lanes, chunk, chunks, tiles;
  };
  void pack(const StepForm& f);
  void read_four(Kernel& k) const;
  Kernel framed(const char* frame) const;
  std::vector<int> buffers_of(Kernel& k) const;

  const Target& t_;
  const Recurrence& r_;
  const Kind& kind_;
  bool folded_;
  int64_t depth_, turns_, carried_ = 0;    // elements of `carried`
  std::map<std::string, int64_t> places_;  // in `carried`
  std::map<std::string, int> numbers_;     // buffer numbers by name
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
  const std::string product = "  PRODUCT\n";
  size_t at = cell.body.find(product);
  std::string loads = cell.body.substr(0, at), rest = cell.body.substr(at + product.size());
  if (size_t first = k.body.find("LOADS\n"); first != std::string::npos)
    k.body.replace(first, 6, "\n" + loads);
  else
    rest = loads + rest;
  k.body.replace(k.body.find("CELL\n"), 5, "\n" + rest);
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
  for (auto& [name, place] : places_) {
    if (!std::erase_if(k.params, [name = name](const Param& p) { return p.name == name; })) continue;
    std::string at = fmt::format("carried({} + (i))", place);
    k.set(name + "(i)", name == "now" || name == "lengths" ? "I32(" + at + ")" : at);
    k.set(name + "_set(i, v)", fmt::format("carried_set({} + (i), v)", place));
  }
  if (folded_) k.params.push_back({"carried", Element::f32, true, "f32"});
  k.elements = std::max(k.elements, static_cast<uint64_t>(carried_));
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
  scratch("state", r_.rows * depth_);
  start_all();
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

/// The weights in the order of recurrence_steps, once for all turns.
void Planned::pack(const StepForm& f) {
  auto total = f.tiles * f.chunks * 4096 * f.columns;
  auto bytes = static_cast<int64_t>(size_of(element_of(r_.dtype)));
  buffer("packed", ceil_div(total * bytes, 4));
  Kernel k = portable("recurrence_pack", {{"T", element_of(r_.dtype)}});
  k.set("TOTAL", total);
  k.set("H", r_.cells);
  k.set("K", depth_);
  k.set("COLUMNS", f.columns);
  k.set("LANES", f.lanes);
  k.set("CHUNKS", f.chunks);
  k.set("CHUNK", f.chunk);
  k.set("W_AT(g,cell,k)", kind_.gradient ? "(IDX(k) * H + (cell))" : "((IDX(g) * H + (cell)) * K + (k))");
  k.set("GATE(lane,c)", kind_.gradient ? "0" : "(c)");
  k.set("CELL_OF(lane,c)", kind_.gradient ? "((lane) * 4 + (c))" : "(lane)");
  k.elements = static_cast<uint64_t>(std::max(total, kind_.gates * r_.cells * r_.cells));
  list_.launches.push_back(dispatch_items(t_, std::move(k), total, {numbers_["w"], numbers_["packed"]}));
}

LaunchList Planned::steps() && {
  scratch("state", 2 * r_.rows * depth_);  // a group writes one copy while others still read the other
  start_all();
  start_counting();
  StepForm f;
  f.columns = kind_.gradient ? 4 : kind_.gates;
  f.lanes = kind_.gradient ? 4 : 16;
  f.chunk = 256 / f.lanes * 16;
  f.chunks = ceil_div(depth_, f.chunk);
  f.tiles = ceil_div(r_.cells, 16);
  pack(f);
  auto size = [](int64_t rows) { return rows * 260 * 16; };  // with four words between rows: other banks
  int64_t rows = 8;
  while (rows > 1 && (size(rows) > static_cast<int64_t>(t_.local_bytes) || rows / 2 >= r_.rows)) rows /= 2;
  Kernel k = framed("recurrence_steps");
  k.set("ROWS", rows);
  k.set("COLUMNS", f.columns);
  k.set("LANES", f.lanes);
  k.set("CHUNKS", f.chunks);
  k.set("CHUNK", f.chunk);
  k.set("TILES", f.tiles);
  k.set("SIZE", rows * std::max<int64_t>(260, f.chunk / 4));
  k.set("LANE_OF(cell)", kind_.gradient ? "(cell) / 4" : "(cell)");
  k.set("DOT(s,a,b)", "((((s) + (a).x * (b).x) + (a).y * (b).y) + (a).z * (b).z) + (a).w * (b).w");
  k.set("SUM(g)", fmt::format("(({0}) == 0 ? sum.x : ({0}) == 1 ? sum.y : ({0}) == 2 ? sum.z : sum.w)",
                              kind_.gradient ? "across % 4" : "g"));
  k.registers = 128;
  read_four(k);
  k.elements = std::max(k.elements, static_cast<uint64_t>(f.tiles * f.chunks * 4096 * f.columns));
  std::vector<int> buffers = buffers_of(k);
  Launch turn = dispatch(t_, std::move(k), static_cast<uint64_t>(f.tiles * ceil_div(r_.rows, rows)), buffers);
  for (int64_t n = 0; n < turns_; ++n) add_turn(turn);
  finish_carried();
  return std::move(list_);
}

/// How recurrence_steps reads four weights and four numbers of the state.
void Planned::read_four(Kernel& k) const {
  Element e = element_of(r_.dtype);
  if (size_of(e) == 4) {
    k.set("RAW", "float4");
    k.set("FETCH(i)", "packed4(i)");
    k.set("WIDEN(r)", "(r)");
  } else {
    k.set("RAW", "uint2");
    k.set("FETCH(i)",
          t_.language->pointers ? "packed_words2(i)" : "UINT2(packed_word((i) * 2), packed_word((i) * 2 + 1))");
    auto low = [&](const char* word) { return decode(e, fmt::format("((r).{} & 0xffffu)", word)); };
    auto high = [&](const char* word) { return decode(e, fmt::format("((r).{} >> 16)", word)); };
    k.set("WIDEN(r)", fmt::format("FLOAT4({}, {}, {}, {})", low("x"), high("x"), low("y"), high("y")));
  }
  if (depth_ % 4 == 0 && !folded_) return k.set("STATE4(i,k)", "state4((i) / 4)");
  k.set("STATE4(i,k)",
        "FLOAT4(state(i), (k) + 1 < K ? state((i) + 1) : 0.0f, (k) + 2 < K ? state((i) + 2) : 0.0f, "
        "(k) + 3 < K ? state((i) + 3) : 0.0f)");
}

LaunchList Planned::products() && {
  buffer("state", r_.rows * depth_);
  start_all();
  start_counting();
  int64_t columns = kind_.gradient ? r_.cells : kind_.gates * r_.cells;
  buffer("sums", r_.rows * columns);
  std::string w = "w";
  if (r_.dtype != DType::f32) {
    w = "wide_w";
    buffer(w, depth_ * columns);
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
  finish_carried();
  return std::move(list_);
}

LaunchList planned(const Target& t, const Recurrence& r, const Kind& kind) {
  if (!is_float(r.dtype))
    throw Error(Code::declined, fmt::format("a recurrence of dtype {} is not supported", name(r.dtype)));
  element_of(r.dtype);
  if (std::none_of(r.wanted.begin(), r.wanted.end(), [](bool w) { return w; }) || r.rows * r.cells == 0) return {};
  if (t.cpu_like && t.language->float16()) return Planned(t, r, kind, false).panels();
  bool groups = !t.cpu_like && t.max_local >= 256 && t.local_bytes >= 16384;
  auto plan = [&](bool folded) {
    Planned p(t, r, kind, folded);
    return groups ? std::move(p).steps() : std::move(p).products();
  };
  LaunchList list = plan(false);
  bool fits = std::ranges::all_of(list.launches, [&](const Launch& l) { return l.buffers.size() <= t.max_arguments; });
  return fits ? list : plan(true);
}

}  // namespace

LaunchList lstm(const Target& t, const Recurrence& r) { return planned(t, r, lstm_kind); }
LaunchList lstm_dx(const Target& t, const Recurrence& r) { return planned(t, r, lstm_dx_kind); }
LaunchList gru(const Target& t, const Recurrence& r) { return planned(t, r, gru_kind); }
LaunchList gru_dx(const Target& t, const Recurrence& r) { return planned(t, r, gru_dx_kind); }

}  // namespace tutti::codegen
