// Row programs: expressions and reductions over rows in one kernel. A group of work-items shares a row. Where a row
// fits into their registers it is read once ("held"); longer rows are read again after each reduction.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>

#include "core/base/instr.h"
#include "core/base/rounding.h"
#include "core/base/status.h"
#include "core/geometry/copy.h"
#include "kernels/codegen/expression.h"
#include "kernels/codegen/kernel.h"
#include "kernels/codegen/lanes.h"
#include "kernels/codegen/reduce.h"

namespace tutti::codegen {
namespace {

/// How work-items combine their parts of a row.
enum class Meet {
  tree,   ///< in shared memory
  lanes,  ///< registers of a subgroup (lavapipe)
};

/// How a row is divided: `span` work-items of `lanes` adjacent elements each, in one step if `held`.
struct Division {
  int64_t span = 1, lanes = 1, rows_per_group = 1;
  Meet meet = Meet::tree;
  bool held = true;
};

constexpr int64_t longest_row = 1 << 17;  // of one group

std::optional<Division> division_of(const Target& t, int64_t rows, int64_t length) {
  Division d;
  if (rows == 0 || length < 2) return {};
  if (t.cpu_like && t.language->subgroups) {
    if (t.subgroup != 8 || length > 4096) return {};
    d.meet = Meet::lanes;
    d.span = 8;
    d.lanes = length % 4 == 0 ? 4 : 1;
    while (length % (d.lanes * 2) == 0 && d.lanes >= 4 && d.lanes < 16 && d.lanes * d.span < length) d.lanes *= 2;
    d.held = d.span * d.lanes >= length;
    return d;
  }
  if (t.cpu_like) return {};  // PoCL does not vectorize work-items around barriers: slower than separate passes
  if (length > longest_row || (length > 4096 && rows < 2 * int64_t{t.compute_units})) return {};
  d.lanes = length % 4 == 0 ? 4 : 1;
  int64_t most = std::min<int64_t>({t.max_local, 256, static_cast<int64_t>(t.local_bytes / (4 * most_row_folds))});
  most = std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1)));
  d.span =
      std::min<int64_t>(most, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_div(length, d.lanes)))));
  d.held = d.span * d.lanes >= length;
  while (d.span * d.rows_per_group * 2 <= std::min<int64_t>(most, 128) && rows % (d.rows_per_group * 2) == 0)
    d.rows_per_group *= 2;
  return d;
}

enum class Level { constant, row, full };

/// Writes the text of a row program's kernel.
class RowWriter {
 public:
  RowWriter(const Target& t, const RowProgram& p, const Division& d, Kernel& k) : t_(t), p_(p), d_(d), k_(k) {
    names_.resize(p.code.size());
    for (uint32_t i = 0; i < p.code.size(); ++i) place(i);
    merge_outer();
  }

  void write() {
    text_ += fmt::format("  if (GROUP >= {}) return;\n", p_.rows() / d_.rows_per_group);
    text_ += fmt::format("  idx row = GROUP * {} + LID(1);\n  int me = LID(0);\n", d_.rows_per_group);
    coordinates();
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_INPUT && level_[i] == Level::row) load_scalar(i);
    if (d_.held)
      held();
    else
      looped();
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_RESULT && level_[i] != Level::full) store_scalar(p_.code[i]);
    k_.body = std::move(text_);
    k_.rounds = std::to_string(rounds_ + 1);
  }

 private:
  /// Sets an instruction's level, and the number of reductions that must come before it.
  void place(uint32_t i) {
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
    if (x.code == instr::fold) {
      if (level != Level::full) throw Error(Code::internal, "a row program folds a value that has one element per row");
      level = Level::row;
      last_ = std::max(last_, ++stage);
    }
    level_.push_back(level);
    stage_.push_back(stage);
  }

  std::string constant(const TuttiInstr& x) const {
    auto t = static_cast<DType>(x.dtype);
    return literal(*t_.language, is_narrow(t) ? DType::f32 : t, instr::constant_of(x));
  }

  void merge_outer() {
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

  /// c0 …: the row's coordinates.
  void coordinates() {
    if (outer_.size() > 1) text_ += "  idx rest = row;\n";
    for (size_t d = outer_.size(); d-- > 1;)
      text_ += fmt::format("  idx c{0} = rest % {1};\n  rest = rest / {1};\n", d, outer_[d]);
    text_ += fmt::format("  idx c0 = {};\n", outer_.size() > 1 ? "rest" : "row");
  }

  std::string base(uint32_t input) const {
    std::string s = "0";
    for (size_t d = 0; d < outer_.size(); ++d)
      if (int64_t stride = strides_[input][d]) s += fmt::format(" + c{} * {}", d, stride);
    return s;
  }

  const Param& param(uint32_t input) const { return k_.params[input]; }

  void load_scalar(uint32_t i) {
    const Param& p = param(p_.code[i].a);
    names_[i] = {fmt::format("s{}", i)};
    text_ += fmt::format("  {} s{} = {}({});\n", register_type(p.element), i, p.name, base(p_.code[i].a));
  }

  /// Loads the elements from `x` on.
  void load(uint32_t i, const std::string& x) {
    uint32_t input = p_.code[i].a;
    const Param& p = param(input);
    int64_t step = p_.in[input].strides.back();
    std::string from = fmt::format("b{}", i), to = fmt::format("a{}", i);
    text_ += fmt::format("  idx {} = {} + {}{};\n", from, base(input), x, step == 1 ? "" : fmt::format(" * {}", step));
    names_[i].clear();
    const Shape& s = strides_[input];
    bool together = d_.lanes > 1 && step == 1 && std::ranges::all_of(s, [&](int64_t n) { return n % d_.lanes == 0; });
    if (together) {
      text_ += load_lanes(t_, p, from, d_.lanes, to, names_[i]);
      return;
    }
    for (int64_t l = 0; l < d_.lanes; ++l) {
      names_[i].push_back(fmt::format("{}_{}", to, l));
      text_ +=
          fmt::format("  {} {} = {}({} + {});\n", register_type(p.element), names_[i].back(), p.name, from, l * step);
    }
  }

  /// Statements for `wanted` instructions, in the program's order; all others that they read have names.
  void compute(const std::set<uint32_t>& wanted, const std::string& prefix) {
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
    text_ += s.text;
    uint32_t r = 0;
    for (uint32_t i : wanted) names_[i] = s.results[r++];
  }

  bool computed(uint32_t i) const {
    uint16_t code = p_.code[i].code;
    return code != TUTTI_X_INPUT && code != TUTTI_X_CONST && code != TUTTI_X_RESULT && code != instr::fold;
  }

  /// Each row is in registers: loads, then each stage's instructions and folds, then stores.
  void held() {
    bool part = d_.span * d_.lanes != p_.length;
    text_ += fmt::format("  idx x = me * {};\n", d_.lanes);
    if (part) text_ += fmt::format("  idx at = x < {0} ? x : {1};\n", p_.length, p_.length - d_.lanes);
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_INPUT && level_[i] == Level::full) load(i, part ? "at" : "x");
    for (int stage = 0; stage <= last_; ++stage) {
      std::set<uint32_t> wanted;
      for (uint32_t i = 0; i < p_.code.size(); ++i)
        if (computed(i) && stage_[i] == stage) wanted.insert(i);
      compute(wanted, fmt::format("v{}_", stage));
      for (uint32_t i : folds_of(stage)) {
        std::string value = combined(i, lanes_of(p_.code[i].a));
        if (part) value = fmt::format("x < {} ? {} : {}", p_.length, value, init(i));
        text_ += fmt::format("  {} q{} = {};\n", type(i), i, value);
      }
      meet(stage);
    }
    if (part) text_ += fmt::format("  if (x < {}) {{\n", p_.length);
    stores();
    if (part) text_ += "  }\n";
  }

  /// Rows longer than the registers: a loop per stage, which computes again what its folds and the results read.
  void looped() {
    for (int stage = 0; stage <= last_; ++stage) {
      std::set<uint32_t> scalars, full, loaded;
      for (uint32_t i = 0; i < p_.code.size(); ++i)
        if (computed(i) && stage_[i] == stage && level_[i] != Level::full) scalars.insert(i);
      compute(scalars, fmt::format("r{}_", stage));
      std::vector<uint32_t> folds = folds_of(stage);
      for (uint32_t i : folds) need(p_.code[i].a, full, loaded);
      bool last = stage == last_;
      for (const TuttiInstr& x : p_.code)
        if (last && x.code == TUTTI_X_RESULT && level_[x.a] == Level::full) need(x.a, full, loaded);
      if (full.empty() && loaded.empty()) continue;
      for (uint32_t i : folds)
        for (int64_t l = 0; l < d_.lanes; ++l) text_ += fmt::format("  {} q{}_{} = {};\n", type(i), i, l, init(i));
      text_ += fmt::format("  for (idx x = me * {0}; x < {1}; x += {2}) {{\n", d_.lanes, p_.length, d_.span * d_.lanes);
      rounds_ += ceil_div(p_.length, d_.span * d_.lanes) + 1;
      for (uint32_t i : loaded) load(i, "x");
      compute(full, fmt::format("v{}_", stage));
      for (uint32_t i : folds) {
        std::vector<std::string> values = lanes_of(p_.code[i].a);
        for (int64_t l = 0; l < d_.lanes; ++l)
          text_ += fmt::format("  q{0}_{1} = COMBINE{0}(q{0}_{1}, {2});\n", i, l, values[static_cast<size_t>(l)]);
      }
      if (last) stores();
      text_ += "  }\n";
      for (uint32_t i : folds) {
        std::vector<std::string> parts;
        for (int64_t l = 0; l < d_.lanes; ++l) parts.push_back(fmt::format("q{}_{}", i, l));
        text_ += fmt::format("  {} q{} = {};\n", type(i), i, combined(i, parts));
      }
      meet(stage);
    }
  }

  /// Adds a full-level instruction and those that it reads.
  void need(uint32_t i, std::set<uint32_t>& full, std::set<uint32_t>& loaded) const {
    if (level_[i] != Level::full) return;
    if (p_.code[i].code == TUTTI_X_INPUT) {
      loaded.insert(i);
      return;
    }
    if (!full.insert(i).second) return;
    const TuttiInstr& x = p_.code[i];
    const uint32_t operands[] = {x.a, x.b, x.c};
    for (int o = 0; o < instr::operand_count(x.code); ++o) need(operands[o], full, loaded);
  }

  /// The folds whose operands are complete in a stage.
  std::vector<uint32_t> folds_of(int stage) const {
    std::vector<uint32_t> list;
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == instr::fold && stage_[i] == stage + 1) list.push_back(i);
    return list;
  }

  DType register_dtype(uint32_t fold) const {
    auto t = static_cast<DType>(p_.code[fold].dtype);
    return is_float(t) ? DType::f32 : t;
  }
  const char* type(uint32_t fold) const { return register_type(element_of(register_dtype(fold))); }
  ReduceOp kind(uint32_t fold) const { return static_cast<ReduceOp>(p_.code[fold].b); }
  std::string init(uint32_t fold) const {
    return literal(*t_.language, register_dtype(fold), neutral_of(kind(fold), register_dtype(fold)));
  }

  std::vector<std::string> lanes_of(uint32_t i) const {
    std::vector<std::string> list = names_[i];
    list.resize(static_cast<size_t>(d_.lanes), list[0]);
    return list;
  }

  std::string combined(uint32_t fold, std::vector<std::string> parts) const {
    while (parts.size() > 1) {
      std::vector<std::string> next;
      for (size_t n = 0; n + 1 < parts.size(); n += 2)
        next.push_back(fmt::format("COMBINE{}({}, {})", fold, parts[n], parts[n + 1]));
      if (parts.size() % 2) next.push_back(parts.back());
      parts = std::move(next);
    }
    return parts[0];
  }

  /// Reduces the work-items' q… of a stage's folds to the row's r….
  void meet(int stage) {
    std::vector<uint32_t> folds = folds_of(stage);
    if (folds.empty()) return;
    for (uint32_t i : folds) k_.set(fmt::format("COMBINE{}(a,b)", i), combine_of(kind(i), register_dtype(i)));
    if (d_.meet == Meet::lanes)
      meet_in_registers(folds);
    else
      meet_in_tree(folds);
    for (uint32_t i : folds) {
      bool real = is_float(register_dtype(i));
      std::string mean = kind(i) == ReduceOp::mean ? fmt::format(" / {}{}", p_.length, real ? ".0f" : "") : "";
      text_ += fmt::format("  {0} f{1} = r{1}{2};\n", type(i), i, mean);
      names_[i] = {fmt::format("f{}", i)};
    }
  }

  void meet_in_registers(const std::vector<uint32_t>& folds) {
    for (uint32_t i : folds) {
      std::vector<std::string> parts;
      for (int64_t n = 0; n < d_.span; ++n) parts.push_back(fmt::format("subgroupBroadcast(q{}, {}u)", i, n));
      text_ += fmt::format("  {} r{} = {};\n", type(i), i, combined(i, parts));
    }
  }

  void meet_in_tree(const std::vector<uint32_t>& folds) {
    if (d_.span == 1) {
      for (uint32_t i : folds) text_ += fmt::format("  {0} r{1} = q{1};\n", type(i), i);
      return;
    }
    for (uint32_t i : folds) {
      k_.shared.push_back(fmt::format("{} tile{}[LOCALS]", type(i), i));
      text_ += fmt::format("  tile{0}[LOCAL] = q{0};\n", i);
    }
    text_ += "  BARRIER;\n";
    text_ += fmt::format("  for (int part = {}; part > 0; part = part / 2) {{\n  if (me < part) {{\n", d_.span / 2);
    rounds_ += std::countr_zero(static_cast<uint64_t>(d_.span)) + 1;
    for (uint32_t i : folds)
      text_ += fmt::format("  tile{0}[LOCAL] = COMBINE{0}(tile{0}[LOCAL], tile{0}[LOCAL + part]);\n", i);
    text_ += "  }\n  BARRIER;\n  }\n";
    for (uint32_t i : folds) text_ += fmt::format("  {0} r{1} = tile{1}[LOCAL - me];\n", type(i), i);
  }

  /// Stores the results that have one element per element of the row.
  void stores() {
    bool any = false;
    for (const TuttiInstr& x : p_.code) {
      if (x.code != TUTTI_X_RESULT || level_[x.a] != Level::full) continue;
      if (!any) text_ += fmt::format("  idx to = row * {} + x;\n", p_.length);
      any = true;
      const Param& p = k_.params[p_.in.size() + x.b];
      std::vector<std::string> values = lanes_of(x.a);
      text_ += d_.lanes > 1 ? store_lanes(t_, p, "to", values) : fmt::format("  {}_set(to, {});\n", p.name, values[0]);
    }
  }

  void store_scalar(const TuttiInstr& x) {
    text_ += fmt::format("  if (me == 0) {}_set(row, {});\n", k_.params[p_.in.size() + x.b].name, names_[x.a][0]);
  }

  const Target& t_;
  const RowProgram& p_;
  Division d_;
  Kernel& k_;
  std::string text_;
  std::vector<Level> level_;
  std::vector<int> stage_;
  std::vector<std::vector<std::string>> names_;
  Shape outer_;
  std::vector<Shape> strides_;
  int last_ = 0;
  int64_t rounds_ = 0;
};

/// Index of an operand's last element + 1.
int64_t reach_of(const RowProgram& p, const Operand& x) {
  int64_t reach = 1 + (p.length - 1) * x.strides.back();
  for (size_t d = 0; d < p.outer.size(); ++d) reach += (p.outer[d] - 1) * x.strides[d];
  return reach;
}

}  // namespace

bool runs_rows(const Target& t, int64_t rows, int64_t length) { return division_of(t, rows, length).has_value(); }

LaunchList row_program(const Target& t, const RowProgram& p) {
  std::optional<Division> d = division_of(t, p.rows(), p.length);
  if (!d) throw Error(Code::declined, fmt::format("{} rows of {} elements", p.rows(), p.length));
  Kernel k;
  k.name = "row_program";
  k.may_alias = true;
  std::vector<int> buffers;
  auto add = [&](std::string name, DType dtype, bool written) {
    k.params.push_back({std::move(name), element_of(dtype), written, ""});
    buffers.push_back(static_cast<int>(buffers.size()));
  };
  for (size_t i = 0; i < p.in.size(); ++i) add(fmt::format("in{}v", i), p.in[i].dtype, false);
  for (size_t o = 0; o < p.out.size(); ++o) add(fmt::format("out{}v", o), p.out[o], true);
  k.elements = static_cast<uint64_t>(p.rows() * p.length);
  for (size_t i = 0; i < p.in.size(); ++i) {
    int64_t reach = reach_of(p, p.in[i]);
    k.elements = std::max(k.elements, static_cast<uint64_t>(reach));
    k.read_as_texels(t, k.params[i].name, reach);
  }
  k.local = {static_cast<uint32_t>(d->span), static_cast<uint32_t>(d->rows_per_group), 1};
  k.subgroups = d->meet == Meet::lanes;
  RowWriter(t, p, *d, k).write();
  return {{dispatch(t, std::move(k), static_cast<uint64_t>(p.rows() / d->rows_per_group), std::move(buffers))}, {}};
}

}  // namespace tutti::codegen
