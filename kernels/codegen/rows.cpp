// Row programs: expressions and reductions over rows in one kernel. A group of work-items shares a row. Where a row
// fits into their registers it is read once ("held"); longer rows are read again after each reduction. If columns are
// folded too, a group takes several rows in turn and keeps its columns' running values in registers. Large rows in
// segments, such as the channels of images, are shared by several groups, with a kernel per stage.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "core/base/instr.h"
#include "core/base/rounding.h"
#include "core/base/status.h"
#include "kernels/codegen/lanes.h"
#include "kernels/codegen/row_code.h"
#include "kernels/codegen/row_loops.h"

namespace tutti::codegen {
namespace {

/// Writes the text of a row program's kernel.
class RowWriter : RowCode {
 public:
  RowWriter(const Target& t, const RowProgram& p, const Division& d, Kernel& k) : RowCode(t, p), d_(d), k_(k) {}

  void write() {
    int64_t blocks = p_.rows() / d_.rows_per_group;
    text_ += fmt::format("  if (GROUP >= {}) return;\n  int me = LID(0);\n", d_.parts ? d_.parts * d_.tiles : blocks);
    std::string block = "GROUP";
    if (d_.parts) {
      begin_columns();
      // Without a barrier in between, idle work-items must not load what others store in place.
      bool idle = last_ == 0 && uneven();
      std::string first = idle ? fmt::format("{} < {} ? share : {}", first_element(), p_.length, blocks) : "share";
      text_ += fmt::format("  for (idx block = {}; block < {}; block += {}) {{\n", first, blocks, d_.parts);
      block = "block";
    }
    text_ += fmt::format("  idx row = {} * {} + LID(1);\n", block, d_.rows_per_group);
    text_ += coordinates();
    load_scalars(false);
    if (d_.held)
      held();
    else
      looped();
    finish_row("me == 0");
    if (d_.parts) {
      fold_columns();
      if (!k_.shared.empty()) text_ += "  BARRIER;\n";  // the next turn overwrites what this one reads
      text_ += "  }\n";
      rounds_ = (rounds_ + 1) * ceil_div(blocks, d_.parts);
      end_columns();
    }
    end();
  }

  /// The kernel of one stage of rows that several groups share.
  void write(int stage) {
    text_ += fmt::format("  if (GROUP >= {}) return;\n  int me = LID(0);\n", p_.rows() * d_.shares);
    text_ += fmt::format("  idx row = GROUP / {0};\n  idx share = GROUP % {0};\n", d_.shares);
    text_ += coordinates();
    load_scalars(false);
    looped(stage);
    if (stage == last_) finish_row("me == 0 && share == 0");
    end();
  }

 private:
  void end() {
    k_.body = std::move(text_);
    k_.rounds = std::to_string(rounds_ + 1);
  }

  /// The inputs with one element per row: those that elements or folds are computed with, or the others.
  void load_scalars(bool late_ones) {
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_INPUT && level_[i] == Level::row && late(i) == late_ones)
        text_ += load_scalar(k_, i);
  }

  /// Computes and stores the results with one element per row.
  void finish_row(const char* condition) {
    auto per_row = [&](const TuttiInstr& x) { return x.code == TUTTI_X_RESULT && level_[x.a] <= Level::row; };
    if (std::ranges::none_of(p_.code, per_row)) return;
    text_ += fmt::format("  if ({}) {{\n", condition);
    load_scalars(true);
    std::set<uint32_t> wanted;
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (computed(i) && late(i)) wanted.insert(i);
    text_ += compute(wanted, "l");
    for (const TuttiInstr& x : p_.code)
      if (per_row(x)) text_ += fmt::format("  {}_set(row, {});\n", param(k_, "out", x.b).name, names_[x.a][0]);
    text_ += "  }\n";
  }

  /// Where element `x` of a row lies, relative to its first.
  std::string offset(const std::string& x) const {
    if (!p_.segment) return x;
    return fmt::format("{0} / {1} * {2} + {0} % {1}", x, p_.segment, p_.rows() * p_.segment);
  }

  std::string first_element() const {
    return d_.tiles > 1 ? fmt::format("(tile * {} + me) * {}", d_.span, d_.lanes) : fmt::format("me * {}", d_.lanes);
  }
  bool uneven() const { return d_.tiles * d_.span * d_.lanes != p_.length; }

  /// c…: the running values of the columns.
  void begin_columns() {
    if (d_.tiles > 1) text_ += fmt::format("  idx tile = GROUP % {};\n", d_.tiles);
    text_ += d_.tiles > 1 ? fmt::format("  idx share = GROUP / {};\n", d_.tiles) : "  idx share = GROUP;\n";
    for (uint32_t i : column_folds()) {
      define(k_, i);
      for (int64_t l = 0; l < d_.lanes; ++l) text_ += fmt::format("  {} c{}_{} = {};\n", type(i), i, l, init(i));
    }
  }

  void fold_columns() {
    for (uint32_t i : column_folds()) {
      std::vector<std::string> values = lanes_of(p_.code[i].a, d_.lanes);
      for (int64_t l = 0; l < d_.lanes; ++l)
        text_ += fmt::format("  c{0}_{1} = COMBINE{0}(c{0}_{1}, {2});\n", i, l, values[static_cast<size_t>(l)]);
    }
  }

  /// Folds the columns of the rows that a group computes side by side.
  void meet_columns(uint32_t fold) {
    auto each_lane = [&](const char* format) {
      for (int64_t l = 0; l < d_.lanes; ++l)
        text_ += fmt::format(fmt::runtime(format), fold, l, fmt::format("{} * LOCALS", l), d_.span);
    };
    each_lane("  columns[{2} + LOCAL] = c{0}_{1};\n");
    text_ += fmt::format("  BARRIER;\n  for (int part = {}; part > 0; part = part / 2) {{\n  if (LID(1) < part) {{\n",
                         d_.rows_per_group / 2);
    each_lane("  columns[{2} + LOCAL] = COMBINE{0}(columns[{2} + LOCAL], columns[{2} + LOCAL + part * {3}]);\n");
    text_ += "  }\n  BARRIER;\n  }\n";
    each_lane("  c{0}_{1} = columns[{2} + me];\n");
    text_ += "  BARRIER;\n";
    rounds_ += std::countr_zero(static_cast<uint64_t>(d_.rows_per_group)) + 1;
  }

  /// Stores the partial results, or finishes the columns if there is one part.
  void end_columns() {
    std::vector<uint32_t> folds = column_folds();
    if (d_.rows_per_group > 1) {
      k_.shared.push_back(fmt::format("float columns[LOCALS * {}]", d_.lanes));
      for (uint32_t i : folds) meet_columns(i);
    }
    text_ += fmt::format("  idx x = {};\n  if (LID(1) == 0 && x < {}) {{\n", first_element(), p_.length);
    for (size_t n = 0; n < folds.size(); ++n) {
      uint32_t i = folds[n];
      names_[i].clear();
      for (int64_t l = 0; l < d_.lanes; ++l) names_[i].push_back(fmt::format("c{}_{}", i, l));
      if (d_.parts == 1) {
        for (std::string& c : names_[i]) c = fmt::format("({}{})", c, mean_of(i, p_.rows()));
        continue;
      }
      text_ += fmt::format("  idx p{} = (share + {}) * {} + x;\n", i, static_cast<int64_t>(n) * d_.parts, p_.length);
      text_ += stored(*std::ranges::find(k_.params, "partial", &Param::name), fmt::format("p{}", i), names_[i]);
    }
    if (d_.parts == 1) text_ += finish_columns(k_, d_.lanes);
    text_ += "  }\n";
  }

  std::string stored(const Param& p, const std::string& at, const std::vector<std::string>& values) const {
    return d_.lanes > 1 ? store_lanes(t_, p, at, values) : fmt::format("  {}_set({}, {});\n", p.name, at, values[0]);
  }

  /// Loads the elements from `x` on, in pieces `turn` apart.
  void load(uint32_t i, const std::string& x, int64_t pieces, int64_t turn) {
    std::vector<std::string> all;
    for (int64_t n = 0; n < pieces; ++n) {
      load(i, n ? fmt::format("({} + {})", x, n * turn) : x, n ? fmt::format("p{}_", n) : "");
      all.insert(all.end(), names_[i].begin(), names_[i].end());
    }
    names_[i] = std::move(all);
  }

  /// Loads the elements from `x` on.
  void load(uint32_t i, const std::string& x, const std::string& prefix = "") {
    uint32_t input = p_.code[i].a;
    const Param& p = k_.params[input];
    int64_t step = p_.in[input].strides.back();
    std::string from = fmt::format("{}b{}", prefix, i), to = fmt::format("{}a{}", prefix, i);
    text_ += fmt::format("  idx {} = {} + {}{};\n", from, base(input), offset(x),
                         step == 1 ? "" : fmt::format(" * {}", step));
    names_[i].clear();
    const Shape& s = strides_[input];
    bool together = d_.lanes > 1 && step == 1 && p_.in[input].offset % d_.lanes == 0 &&
                    std::ranges::all_of(s, [&](int64_t n) { return n % d_.lanes == 0; });
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

  /// Each row is in registers: loads, then each stage's instructions and folds, then stores.
  void held() {
    bool part = uneven();
    text_ += fmt::format("  idx x = {};\n", first_element());
    if (part) text_ += fmt::format("  idx at = x < {0} ? x : {1};\n", p_.length, p_.length - d_.lanes);
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_INPUT && level_[i] == Level::full) load(i, part ? "at" : "x");
    for (int stage = 0; stage <= last_; ++stage) {
      std::set<uint32_t> wanted;
      for (uint32_t i = 0; i < p_.code.size(); ++i)
        if (computed(i) && stage_[i] == stage && level_[i] != Level::column && !late(i)) wanted.insert(i);
      text_ += compute(wanted, fmt::format("v{}_", stage));
      for (uint32_t i : folds_of(stage)) {
        std::string value = combined(i, lanes_of(p_.code[i].a, d_.lanes));
        if (part) value = fmt::format("x < {} ? {} : {}", p_.length, value, init(i));
        text_ += fmt::format("  {} q{} = {};\n", type(i), i, value);
      }
      meet(stage);
    }
    if (part) text_ += fmt::format("  if (x < {}) {{\n", p_.length);
    stores();
    if (part) text_ += "  }\n";
  }

  /// Rows longer than the registers: a loop per stage, which computes again what its folds and the results read; or the
  /// loop of stage `only`, if not negative, after the partial results of those before.
  void looped(int only = -1) {
    for (int stage = 0; stage <= (only < 0 ? last_ : only); ++stage) {
      std::set<uint32_t> scalars, full, loaded;
      for (uint32_t i = 0; i < p_.code.size(); ++i)
        if (computed(i) && stage_[i] == stage && level_[i] != Level::full && !late(i)) scalars.insert(i);
      text_ += compute(scalars, fmt::format("r{}_", stage));
      std::vector<uint32_t> folds = folds_of(stage);
      if (stage < only) {
        fold_partials(stage);
        continue;
      }
      for (uint32_t i : folds) need(p_.code[i].a, full, loaded);
      bool last = stage == last_;
      for (const TuttiInstr& x : p_.code)
        if (last && x.code == TUTTI_X_RESULT && level_[x.a] == Level::full) need(x.a, full, loaded);
      if (full.empty() && loaded.empty()) continue;
      int64_t lanes = d_.lanes * d_.apart;
      for (uint32_t i : folds)
        for (int64_t l = 0; l < lanes; ++l) text_ += fmt::format("  {} q{}_{} = {};\n", type(i), i, l, init(i));
      int64_t turn = d_.shares * d_.span * d_.lanes;
      std::string first = d_.shares > 1 ? fmt::format("(share * {} + me)", d_.span) : "me";
      text_ += fmt::format("  {{\n  idx x = {} * {};\n", first, d_.lanes);
      rounds_ += ceil_div(p_.length, turn) + 2;
      for (int64_t pieces : {d_.apart, int64_t{1}}) {
        text_ += pieces > 1
                     ? fmt::format("  for (; x < {}; x += {}) {{\n", p_.length - (pieces - 1) * turn, pieces * turn)
                     : fmt::format("  for (; x < {}; x += {}) {{\n", p_.length, turn);
        turn_of(stage, pieces, turn, full, loaded, folds);
        text_ += "  }\n";
        if (d_.apart == 1) break;
      }
      text_ += "  }\n";
      for (uint32_t i : folds) {
        std::vector<std::string> parts;
        for (int64_t l = 0; l < lanes; ++l) parts.push_back(fmt::format("q{}_{}", i, l));
        text_ += fmt::format("  {} q{} = {};\n", type(i), i, combined(i, parts));
      }
      meet(stage);
      if (stage == only && !last) store_partials(stage, folds);
    }
  }

  /// What a loop over a row does with as many pieces of it, `turn` elements apart, from `x` on.
  void turn_of(int stage, int64_t pieces, int64_t turn, const std::set<uint32_t>& full,
               const std::set<uint32_t>& loaded, const std::vector<uint32_t>& folds) {
    for (uint32_t i : loaded) load(i, "x", pieces, turn);
    text_ += compute(full, fmt::format("v{}_", stage));
    for (uint32_t i : folds) {
      std::vector<std::string> values = lanes_of(p_.code[i].a, d_.lanes * pieces);
      for (size_t l = 0; l < values.size(); ++l)
        text_ += fmt::format("  q{0}_{1} = COMBINE{0}(q{0}_{1}, {2});\n", i, l, values[l]);
    }
    if (stage == last_) stores(pieces, turn);
  }

  /// Where the partial result of fold `n` of a stage lies.
  std::string partial(size_t n, const char* share) const {
    return fmt::format("({} + {}) * {} + row", share, static_cast<int64_t>(n) * d_.shares, p_.rows());
  }

  void store_partials(int stage, const std::vector<uint32_t>& folds) {
    for (size_t n = 0; n < folds.size(); ++n)
      text_ += fmt::format("  if (me == 0) partial{}_set({}, r{});\n", stage, partial(n, "share"), folds[n]);
  }

  void fold_partials(int stage) {
    std::vector<uint32_t> folds = folds_of(stage);
    for (uint32_t i : folds) text_ += fmt::format("  {} q{} = {};\n", type(i), i, init(i));
    text_ += fmt::format("  for (idx from = me; from < {}; from += {}) {{\n", d_.shares, d_.span);
    rounds_ += ceil_div(d_.shares, d_.span) + 1;
    for (size_t n = 0; n < folds.size(); ++n)
      text_ += fmt::format("  q{0} = COMBINE{0}(q{0}, partial{1}({2}));\n", folds[n], stage, partial(n, "from"));
    text_ += "  }\n";
    meet(stage);
  }

  /// Reduces the work-items' q… of a stage's folds to the row's r….
  void meet(int stage) {
    std::vector<uint32_t> folds = folds_of(stage);
    if (folds.empty()) return;
    for (uint32_t i : folds) define(k_, i);
    if (d_.meet == Meet::lanes)
      meet_in_registers(folds);
    else
      meet_in_tree(folds);
    for (uint32_t i : folds) {
      text_ += fmt::format("  {0} f{1} = r{1}{2};\n", type(i), i, mean_of(i, p_.length));
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

  /// Stores the results that have one element per element of the row, in pieces `turn` apart.
  void stores(int64_t pieces = 1, int64_t turn = 0) {
    bool any = false;
    for (const TuttiInstr& x : p_.code) {
      if (x.code != TUTTI_X_RESULT || level_[x.a] != Level::full) continue;
      int64_t step = p_.segment ? p_.segment : p_.length;
      if (!any) text_ += fmt::format("  idx to = row * {} + {};\n", step, offset("x"));
      any = true;
      std::vector<std::string> values = lanes_of(x.a, d_.lanes * pieces);
      for (int64_t n = 0; n < pieces; ++n) {
        auto from = values.begin() + n * d_.lanes;
        text_ += stored(param(k_, "out", x.b), n ? fmt::format("to + {}", n * turn) : "to", {from, from + d_.lanes});
      }
    }
  }

  Division d_;
  Kernel& k_;
  std::string text_;
  int64_t rounds_ = 0;
};

/// Index of an operand's last element + 1.
int64_t reach_of(const RowProgram& p, const Operand& x) {
  if (p.segment && x.strides.back()) return p.rows() * p.length;
  int64_t reach = 1 + x.offset + (p.length - 1) * x.strides.back();
  for (size_t d = 0; d < p.outer.size(); ++d) reach += (p.outer[d] - 1) * x.strides[d];
  return reach;
}

void add_param(Kernel& k, std::vector<int>& buffers, std::string name, DType dtype, bool written, size_t buffer) {
  k.params.push_back({std::move(name), element_of(dtype), written, ""});
  buffers.push_back(static_cast<int>(buffer));
}

void remove_unused(Kernel& k, std::vector<int>& buffers) {
  for (size_t i = k.params.size(); i-- > 0;) {
    if (k.body.find(k.params[i].name) != std::string::npos) continue;
    k.params.erase(k.params.begin() + static_cast<std::ptrdiff_t>(i));
    buffers.erase(buffers.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Rows that several groups share: a kernel per stage.
LaunchList shared_rows(const Target& t, const RowProgram& p, const RowCode& code, const Division& d) {
  LaunchList list;
  size_t ins = p.in.size(), all = ins + p.out.size();
  for (int stage = 0; stage < code.stages() - 1; ++stage)
    list.scratch_bytes.push_back(4 * static_cast<uint64_t>(d.shares * p.rows()) * code.folds_of(stage).size());
  for (int stage = 0; stage < code.stages(); ++stage) {
    Kernel k;
    std::vector<int> buffers;
    k.name = fmt::format("row_program_{}", stage);
    k.may_alias = true;
    k.elements = static_cast<uint64_t>(p.rows() * p.length);
    k.local = {static_cast<uint32_t>(d.span), 1, 1};
    for (size_t i = 0; i < ins; ++i) add_param(k, buffers, fmt::format("in{}v", i), p.in[i].dtype, false, i);
    for (size_t i = 0; i < p.out.size(); ++i) add_param(k, buffers, fmt::format("out{}v", i), p.out[i], true, ins + i);
    for (int s = 0; s <= stage && s < code.stages() - 1; ++s)
      add_param(k, buffers, fmt::format("partial{}", s), DType::f32, s == stage, all + static_cast<size_t>(s));
    RowWriter(t, p, d, k).write(stage);
    remove_unused(k, buffers);
    list.launches.push_back(dispatch(t, std::move(k), static_cast<uint64_t>(p.rows() * d.shares), std::move(buffers)));
  }
  return list;
}

}  // namespace

bool runs_rows(const Target& t, const RowForm& form) { return division_of(t, form).has_value(); }

std::vector<bool> read_once(const Target& t, const RowProgram& p) {
  RowCode code(t, p);
  const bool columns = code.any(instr::column);
  std::vector<bool> once(p.in.size(), true);
  for (uint32_t i = 0; i < p.code.size(); ++i) {
    if (p.code[i].code != TUTTI_X_INPUT) continue;
    bool by_one = columns ? code.for_columns_alone(i) : code.level(i) == Level::row && code.late(i);
    if (!by_one) once[p.code[i].a] = false;
  }
  return once;
}

LaunchList row_program(const Target& t, const RowProgram& p) {
  RowCode code(t, p);
  bool columns = code.any(instr::column);
  std::optional<Division> d = division_of(t, code.form());
  if (!d) throw Error(Code::declined, fmt::format("{} rows of {} elements", p.rows(), p.length));
  if (d->shares > 1) return shared_rows(t, p, code, *d);
  Kernel main, last;
  std::vector<int> main_buffers, last_buffers;
  main.name = "row_program";
  main.may_alias = true;
  last.name = "row_program_columns";
  last.may_alias = true;
  size_t ins = p.in.size(), all = ins + p.out.size();
  for (size_t i = 0; i < ins; ++i) add_param(main, main_buffers, fmt::format("in{}v", i), p.in[i].dtype, false, i);
  for (size_t i : code.column_inputs()) add_param(last, last_buffers, fmt::format("in{}v", i), p.in[i].dtype, false, i);
  for (const TuttiInstr& x : p.code) {
    if (x.code != TUTTI_X_RESULT) continue;
    bool late = d->parts > 1 && code.level(x.a) == Level::column;
    add_param(late ? last : main, late ? last_buffers : main_buffers, fmt::format("out{}v", x.b), p.out[x.b], true,
              ins + x.b);
  }
  LaunchList list;
  main.elements = static_cast<uint64_t>(p.rows() * p.length);
  if (d->parts > 1) {
    auto partials = static_cast<uint64_t>(d->parts * p.length) * code.column_folds().size();
    list.scratch_bytes = {4 * partials};
    add_param(main, main_buffers, "partial", DType::f32, true, all);
    add_param(last, last_buffers, "partial", DType::f32, false, all);
    last.elements = partials;
    main.elements = std::max(main.elements, partials);
  }
  for (size_t i = 0; i < ins; ++i) {
    int64_t reach = reach_of(p, p.in[i]);
    main.elements = std::max(main.elements, static_cast<uint64_t>(reach));
    main.read_as_texels(t, main.params[i].name, reach);
  }
  main.local = {static_cast<uint32_t>(d->span), static_cast<uint32_t>(d->rows_per_group), 1};
  main.subgroups = d->meet == Meet::lanes;
  if (d->meet == Meet::alone)
    write_row_loops(t, p, main);
  else
    RowWriter(t, p, *d, main).write();
  int64_t groups = columns ? d->parts * d->tiles : p.rows() / d->rows_per_group;
  list.launches.push_back(dispatch(t, std::move(main), static_cast<uint64_t>(groups), std::move(main_buffers)));
  if (d->parts > 1) {
    ColumnWriter(t, p, d->parts, last).write();
    auto tiles = static_cast<uint64_t>(ceil_div(p.length, ColumnWriter::columns));
    list.launches.push_back(dispatch(t, std::move(last), tiles, std::move(last_buffers)));
  }
  return list;
}

}  // namespace tutti::codegen
