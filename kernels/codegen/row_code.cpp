#include "kernels/codegen/row_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "core/base/instr.h"
#include "core/base/rounding.h"
#include "core/base/status.h"
#include "core/geometry/copy.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/lanes.h"
#include "kernels/codegen/reduce.h"

namespace tutti::codegen {
namespace {

constexpr int64_t longest_row = 1 << 17;  // of one group

/// Doubles the rows that a group computes at once while they divide evenly and it has at most `most` work-items.
void place_side_by_side(Division& d, int64_t rows, int64_t most) {
  while (d.span * d.rows_per_group * 2 <= most && rows % (d.rows_per_group * 2) == 0) d.rows_per_group *= 2;
}

/// Enough groups to fill the device, but few, because each writes a partial result per column.
std::optional<Division> with_columns(const Target& t, Division d, int64_t rows, int64_t length, int64_t most,
                                     bool folds) {
  if (folds) {
    while (d.span * d.lanes < length && d.lanes >= 4 && d.lanes < 16 && length % (d.lanes * 2) == 0) d.lanes *= 2;
    d.held = d.span * d.lanes >= length;
    if (!d.held) return {};
  } else {
    d.span = std::min<int64_t>(d.span, 64);
    d.held = true;
    d.tiles = ceil_div(length, d.span * d.lanes);
  }
  place_side_by_side(d, rows, most);
  int64_t blocks = rows / d.rows_per_group, want = int64_t{folds ? 2 : 4} * t.compute_units / d.tiles;
  d.parts = blocks <= 2 ? 1 : std::clamp<int64_t>(want, 1, blocks);
  return d;
}

/// The most work-items of a group with `tiles` values each in shared memory, up to `limit`.
int64_t most_items(const Target& t, size_t tiles, int64_t limit = 256) {
  auto words = static_cast<int64_t>(t.local_bytes / (4 * tiles));
  int64_t most = std::max<int64_t>(std::min<int64_t>({t.max_local, limit, words}), 1);
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
}

int64_t span_of(int64_t length, int64_t lanes, int64_t most) {
  auto span = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_div(length, lanes))));
  return std::min(most, span);
}

/// A work-item per row, if there are enough of them and their elements fill vectors, or if all is small.
std::optional<Division> by_one_item(const Target& t, const RowForm& form) {
  constexpr int64_t small = 1 << 13, least = 16;
  if (form.columns) return {};
  const int64_t line = form.segment ? form.segment : form.length;
  const bool worth = form.rows >= 2 * int64_t{t.compute_units} && line >= least;
  if (!worth && form.rows * form.length > small) return {};
  return Division{.meet = Meet::alone, .held = false};
}

/// Few large rows are shared by as many groups as keep the memory busy; each takes at least four turns.
std::optional<Division> in_segments(const Target& t, const RowForm& form) {
  constexpr int64_t large = 1 << 21, turns = 4, groups_per_unit = 8;
  constexpr int64_t rounds_per_element = 4 * (most_row_folds + 1);  // at most
  int64_t most = most_items(t, most_row_folds);
  if (form.columns || form.segment < 4 || ceil_div(form.length, most) * rounds_per_element > t.max_rounds) return {};
  Division d;
  d.lanes = form.segment % 4 == 0 ? 4 : 1;
  while (most * d.lanes < form.length && d.lanes >= 4 && d.lanes < 16 && form.segment % (d.lanes * 2) == 0)
    d.lanes *= 2;
  d.span = span_of(form.length, d.lanes, most);
  d.held = d.span * d.lanes >= form.length;
  if (d.held) {
    place_side_by_side(d, form.rows, std::min<int64_t>(most, 128));
    return d;
  }
  d.lanes = std::min<int64_t>(d.lanes, 4);
  if (form.rows * form.length < large && form.length <= longest_row) return d;
  int64_t want = ceil_div(groups_per_unit * int64_t{t.compute_units}, form.rows);
  d.shares = std::clamp<int64_t>(form.length / (d.span * d.lanes * turns), 1, want);
  return d;
}

}  // namespace

std::optional<Division> division_of(const Target& t, const RowForm& form) {
  auto [rows, length, segment, folds, columns] = form;
  Division d;
  if (rows == 0 || length < 2) return {};
  if (t.cpu_like && !t.language->subgroups) return by_one_item(t, form);
  if (t.cpu_like) {
    if (segment || columns || t.subgroup != 8 || length > 4096) return {};
    d.meet = Meet::lanes;
    d.span = 8;
    d.lanes = length % 4 == 0 ? 4 : 1;
    while (length % (d.lanes * 2) == 0 && d.lanes >= 4 && d.lanes < 16 && d.lanes * d.span < length) d.lanes *= 2;
    d.held = d.span * d.lanes >= length;
    return d;
  }
  if (segment) return in_segments(t, form);
  if (folds && (length > longest_row || (length > 4096 && rows < 2 * int64_t{t.compute_units}))) return {};
  d.lanes = length % 4 == 0 ? 4 : 1;
  int64_t most = most_items(t, columns ? most_row_folds + 4 : most_row_folds);
  d.span = span_of(length, d.lanes, most);
  d.held = d.span * d.lanes >= length;
  if (columns) return with_columns(t, d, rows, length, most, folds);
  if (!d.held) {
    // With larger groups fewer rows are in work at once: what a row's later loops read is still in the cache.
    constexpr int64_t very_long = 16384, together = 8;
    if (length >= very_long) d.span = most_items(t, most_row_folds, 512);
    int64_t apart = together / d.lanes;
    if (length >= 2 * apart * d.span * d.lanes) d.apart = apart;
  }
  place_side_by_side(d, rows, std::min<int64_t>(most, 128));
  return d;
}

RowCode::RowCode(const Target& t, const RowProgram& p) : t_(t), p_(p), names_(p.code.size()) {
  for (uint32_t i = 0; i < p.code.size(); ++i) place(i);
  mark_early();
  merge_outer();
}

void RowCode::merge_outer() {
  outer_ = p_.outer;
  if (outer_.empty()) outer_ = {1};
  Shape dense = strides_of(outer_);
  std::vector<Shape*> all = {&dense};
  for (const Operand& x : p_.in) {
    strides_.emplace_back(x.strides.begin(), x.strides.end() - 1);
    if (p_.outer.empty()) strides_.back() = {0};
  }
  for (Shape& s : strides_) all.push_back(&s);
  merge_dimensions(outer_, all);
}

std::string RowCode::coordinates() const {
  std::string text = outer_.size() > 1 ? "  idx rest = row;\n" : "";
  for (size_t d = outer_.size(); d-- > 1;)
    text += fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, outer_[d]);
  return text + fmt::format("  idx c0 = {};\n", outer_.size() > 1 ? "rest" : "row");
}

std::string RowCode::base(uint32_t input) const {
  std::string s = std::to_string(p_.in[input].offset);
  for (size_t d = 0; d < outer_.size(); ++d)
    if (int64_t stride = strides_[input][d]) s += fmt::format(" + c{} * {}", d, stride);
  return s;
}

std::string RowCode::load_scalar(const Kernel& k, uint32_t i) {
  const Param& p = k.params[p_.code[i].a];
  names_[i] = {fmt::format("s{}", i)};
  return fmt::format("  {} s{} = {}({});\n", register_type(p.element), i, p.name, base(p_.code[i].a));
}

void RowCode::need(uint32_t i, std::set<uint32_t>& full, std::set<uint32_t>& loaded) const {
  if (level_[i] != Level::full) return;
  if (p_.code[i].code == TUTTI_X_INPUT) {
    loaded.insert(i);
    return;
  }
  if (!full.insert(i).second) return;
  const TuttiInstr& x = p_.code[i];
  const int operands = instr::operand_count(x.code);
  if (operands > 0) need(x.a, full, loaded);
  if (operands > 1) need(x.b, full, loaded);
  if (operands > 2) need(x.c, full, loaded);
}

void RowCode::mark_early() {
  early_.resize(p_.code.size());
  outside_.resize(p_.code.size());
  for (auto i = static_cast<uint32_t>(p_.code.size()); i-- > 0;) {
    const TuttiInstr& x = p_.code[i];
    if (x.code == TUTTI_X_RESULT) continue;
    bool read = early_[i] || level_[i] >= Level::full || x.code == instr::fold;
    bool outside = outside_[i] || level_[i] != Level::column || x.code == instr::column;
    const uint32_t operands[] = {x.a, x.b, x.c};
    for (int o = 0; o < instr::operand_count(x.code); ++o) {
      if (read) early_[operands[o]] = true;
      if (outside) outside_[operands[o]] = true;
    }
  }
}

RowForm RowCode::form() const { return {p_.rows(), p_.length, p_.segment, any(instr::fold), any(instr::column)}; }

/// Sets an instruction's level, and the number of reductions that must come before it.
void RowCode::place(uint32_t i) {
  const TuttiInstr& x = p_.code[i];
  Level level = Level::constant;
  int stage = 0;
  const uint32_t operands[] = {x.a, x.b, x.c};
  for (int o = 0; o < instr::operand_count(x.code); ++o) {
    level = std::max(level, level_[operands[o]]);
    stage = std::max(stage, stage_[operands[o]]);
  }
  if (x.code == TUTTI_X_CONST) names_[i] = {constant(x)};
  if (x.code == TUTTI_X_INPUT) level = p_.in[x.a].strides.back() == 0 ? Level::row : Level::full;
  bool fold = x.code == instr::fold, column = x.code == instr::column;
  if ((fold || column) && level != Level::full)
    throw Error(Code::internal, "a row program folds a value that does not have one element per element of the rows");
  for (int o = 0; level == Level::column && o < instr::operand_count(x.code); ++o)
    if (computed(operands[o]) && level_[operands[o]] != Level::column && level_[operands[o]] != Level::constant)
      throw Error(Code::internal, "a row program computes with columns and rows");
  if (fold) {
    level = Level::row;
    last_ = std::max(last_, ++stage);
  }
  level_.push_back(column ? Level::column : level);
  stage_.push_back(stage);
}

std::string RowCode::constant(const TuttiInstr& x) const {
  auto t = static_cast<DType>(x.dtype);
  return literal(*t_.language, is_narrow(t) ? DType::f32 : t, instr::constant_of(x));
}

bool RowCode::any(uint16_t code) const {
  return std::ranges::any_of(p_.code, [&](const TuttiInstr& x) { return x.code == code; });
}

bool RowCode::computed(uint32_t i) const {
  uint16_t code = p_.code[i].code;
  return code != TUTTI_X_INPUT && code != TUTTI_X_CONST && code != TUTTI_X_RESULT && code != instr::fold &&
         code != instr::column;
}

std::vector<uint32_t> RowCode::folds_of(int stage) const {
  std::vector<uint32_t> list;
  for (uint32_t i = 0; i < p_.code.size(); ++i)
    if (p_.code[i].code == instr::fold && stage_[i] == stage + 1) list.push_back(i);
  return list;
}

std::vector<uint32_t> RowCode::column_folds() const {
  std::vector<uint32_t> list;
  for (uint32_t i = 0; i < p_.code.size(); ++i)
    if (p_.code[i].code == instr::column) list.push_back(i);
  return list;
}

DType RowCode::register_dtype(uint32_t fold) const {
  auto t = static_cast<DType>(p_.code[fold].dtype);
  return is_float(t) ? DType::f32 : t;
}

std::string RowCode::init(uint32_t fold) const {
  return literal(*t_.language, register_dtype(fold), neutral_of(kind(fold), register_dtype(fold)));
}

void RowCode::define(Kernel& k, uint32_t fold) const {
  k.set(fmt::format("COMBINE{}(a,b)", fold), combine_of(kind(fold), register_dtype(fold)));
}

std::string RowCode::combined(uint32_t fold, std::vector<std::string> parts) const {
  while (parts.size() > 1) {
    std::vector<std::string> next;
    for (size_t n = 0; n + 1 < parts.size(); n += 2)
      next.push_back(fmt::format("COMBINE{}({}, {})", fold, parts[n], parts[n + 1]));
    if (parts.size() % 2) next.push_back(parts.back());
    parts = std::move(next);
  }
  return parts[0];
}

std::string RowCode::mean_of(uint32_t fold, int64_t n) const {
  bool real = is_float(register_dtype(fold));
  return kind(fold) == ReduceOp::mean ? fmt::format(" / {}{}", n, real ? ".0f" : "") : "";
}

const Param& RowCode::param(const Kernel& k, const char* direction, uint32_t number) const {
  return *std::ranges::find(k.params, fmt::format("{}{}v", direction, number), &Param::name);
}

std::vector<std::string> RowCode::lanes_of(uint32_t i, int64_t lanes) const {
  std::vector<std::string> list = names_[i];
  list.resize(static_cast<size_t>(lanes), list[0]);
  return list;
}

std::string RowCode::compute(const std::set<uint32_t>& wanted, const std::string& prefix) {
  std::vector<TuttiInstr> code;
  std::vector<std::vector<std::string>> inputs;
  std::map<uint32_t, uint32_t> at;
  auto operand = [&](uint32_t i) {
    auto [it, fresh] = at.try_emplace(i, 0);
    if (!fresh) return it->second;
    const TuttiInstr& x = p_.code[i];
    if (x.code == TUTTI_X_CONST) {
      code.push_back(x);
    } else {
      inputs.push_back(names_[i]);
      code.push_back({TUTTI_X_INPUT, x.dtype, static_cast<uint32_t>(inputs.size() - 1), 0, 0});
    }
    return it->second = static_cast<uint32_t>(code.size() - 1);
  };
  for (uint32_t i : wanted) {
    TuttiInstr x = p_.code[i];
    uint32_t* operands[] = {&x.a, &x.b, &x.c};
    for (int o = 0; o < instr::operand_count(x.code); ++o) *operands[o] = operand(*operands[o]);
    code.push_back(x);
    at[i] = static_cast<uint32_t>(code.size() - 1);
  }
  uint32_t results = 0;
  for (uint32_t i : wanted) code.push_back({TUTTI_X_RESULT, p_.code[i].dtype, at[i], results++, 0});
  Statements s = statements(t_, code, inputs, results, false, prefix);
  uint32_t r = 0;
  for (uint32_t i : wanted) names_[i] = s.results[r++];
  return s.text;
}

std::set<uint32_t> RowCode::column_reads() const {
  std::set<uint32_t> list;
  for (uint32_t i = 0; i < p_.code.size(); ++i) {
    if (level_[i] != Level::column || !computed(i)) continue;
    const TuttiInstr& x = p_.code[i];
    int count = instr::operand_count(x.code);
    for (uint32_t from : {x.a, count > 1 ? x.b : x.a, count > 2 ? x.c : x.a})
      if (p_.code[from].code == TUTTI_X_INPUT) list.insert(from);
  }
  return list;
}

std::set<uint32_t> RowCode::column_inputs() const {
  std::set<uint32_t> list;
  for (uint32_t i : column_reads()) list.insert(p_.code[i].a);
  return list;
}

std::string RowCode::finish_columns(const Kernel& k, int64_t lanes) {
  std::string text;
  for (uint32_t i : column_reads()) {
    const Param& p = param(k, "in", p_.code[i].a);
    bool one = p_.in[p_.code[i].a].strides.back() == 0;
    names_[i].clear();
    for (int64_t l = 0; l < (one ? 1 : lanes); ++l) {
      names_[i].push_back(fmt::format("e{}_{}", i, l));
      std::string at = one ? "0" : fmt::format("x + {}", l);
      text += fmt::format("  {} {} = {}({});\n", register_type(p.element), names_[i].back(), p.name, at);
    }
  }
  std::set<uint32_t> wanted;
  for (uint32_t i = 0; i < p_.code.size(); ++i)
    if (level_[i] == Level::column && computed(i)) wanted.insert(i);
  text += compute(wanted, "w");
  for (const TuttiInstr& x : p_.code) {
    if (x.code != TUTTI_X_RESULT || level_[x.a] != Level::column) continue;
    const Param& p = param(k, "out", x.b);
    std::vector<std::string> values = lanes_of(x.a, lanes);
    text += lanes > 1 ? store_lanes(t_, p, "x", values) : fmt::format("  {}_set(x, {});\n", p.name, values[0]);
  }
  return text;
}

void ColumnWriter::write() {
  std::vector<uint32_t> folds = column_folds();
  auto most = static_cast<int64_t>(std::min<uint64_t>({t_.max_local, 256, t_.local_bytes / (4 * most_column_folds)}));
  int64_t slices = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most / columns, 1)));
  k_.local = {static_cast<uint32_t>(columns), static_cast<uint32_t>(slices), 1};
  std::string& text = k_.body;
  text = fmt::format("  if (GROUP >= {}) return;\n", ceil_div(p_.length, columns));
  text += fmt::format("  int me = LID(0);\n  idx x = GROUP * {} + me;\n", columns);
  text += fmt::format("  idx at = x < {0} ? x : {1};\n", p_.length, p_.length - 1);
  for (uint32_t i : folds) {
    define(k_, i);
    k_.shared.push_back(fmt::format("{} tile{}[LOCALS]", type(i), i));
    text += fmt::format("  {} q{} = {};\n", type(i), i, init(i));
  }
  text += fmt::format("  for (idx part = LID(1); part < {}; part += {}) {{\n", parts_, slices);
  for (size_t n = 0; n < folds.size(); ++n)
    text += fmt::format("  q{0} = COMBINE{0}(q{0}, partial((part + {1}) * {2} + at));\n", folds[n],
                        static_cast<int64_t>(n) * parts_, p_.length);
  text += "  }\n";
  for (uint32_t i : folds) text += fmt::format("  tile{0}[LOCAL] = q{0};\n", i);
  text += "  BARRIER;\n";
  text += fmt::format("  for (int part = {}; part > 0; part = part / 2) {{\n  if (LID(1) < part) {{\n", slices / 2);
  for (uint32_t i : folds)
    text += fmt::format("  tile{0}[LOCAL] = COMBINE{0}(tile{0}[LOCAL], tile{0}[LOCAL + part * {1}]);\n", i, columns);
  text += fmt::format("  }}\n  BARRIER;\n  }}\n  if (LID(1) == 0 && x < {}) {{\n", p_.length);
  for (uint32_t i : folds) {
    text += fmt::format("  {0} f{1} = tile{1}[me]{2};\n", type(i), i, mean_of(i, p_.rows()));
    names_[i] = {fmt::format("f{}", i)};
  }
  text += finish_columns(k_, 1) + "  }\n";
  k_.rounds = std::to_string(ceil_div(parts_, slices) + std::countr_zero(static_cast<uint64_t>(slices)) + 2);
}

}  // namespace tutti::codegen
