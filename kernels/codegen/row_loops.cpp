// Row programs on CPUs that run OpenCL: a work-item computes a whole row, in a loop per stage. Their compilers do not
// put work-items around barriers into vectors, but loops that are marked.
#include "kernels/codegen/row_loops.h"

#include <fmt/format.h>

#include <set>

#include "core/base/instr.h"
#include "kernels/codegen/row_code.h"

namespace tutti::codegen {
namespace {

constexpr int64_t lanes = 16;  // running values of a fold

class LoopWriter : RowCode {
 public:
  LoopWriter(const Target& t, const RowProgram& p, Kernel& k)
      : RowCode(t, p), k_(k), line_(p.segment ? p.segment : p.length) {}

  void write() {
    text_ = fmt::format("  idx row = GROUP;\n  if (row >= {}) return;\n", p_.rows()) + coordinates();
    for (uint32_t i = 0; i < p_.code.size(); ++i)
      if (p_.code[i].code == TUTTI_X_INPUT && level_[i] == Level::row) text_ += load_scalar(k_, i);
    for (int stage = 0; stage <= last_; ++stage) {
      std::set<uint32_t> scalars;
      for (uint32_t i = 0; i < p_.code.size(); ++i)
        if (computed(i) && stage_[i] == stage && level_[i] != Level::full) scalars.insert(i);
      text_ += compute(scalars, fmt::format("r{}_", stage));
      write_stage(stage);
    }
    for (const TuttiInstr& x : p_.code)
      if (x.code == TUTTI_X_RESULT && level_[x.a] <= Level::row)
        text_ += fmt::format("  {}_set(row, {});\n", param(k_, "out", x.b).name, names_[x.a][0]);
    k_.body = std::move(text_);
    k_.rounds = std::to_string(rounds_ + 1);
    k_.work = static_cast<double>((last_ + 1) * p_.length) / 2;  // vectors, but of several instructions
  }

 private:
  /// The loop over a row before the folds of a stage, or the last one, which stores the results.
  void write_stage(int stage) {
    const std::vector<uint32_t> folds = folds_of(stage);
    full_.clear(), loaded_.clear();
    for (uint32_t i : folds) need(p_.code[i].a, full_, loaded_);
    for (const TuttiInstr& x : p_.code)
      if (stage == last_ && x.code == TUTTI_X_RESULT && level_[x.a] == Level::full) need(x.a, full_, loaded_);
    if (full_.empty() && loaded_.empty()) return;
    for (uint32_t i : folds) {
      define(k_, i);
      text_ += fmt::format("  {} q{}[{}];\n", type(i), i, lanes);
      text_ += fmt::format("  for (int l = 0; l < {}; ++l) q{}[l] = {};\n", lanes, i, init(i));
      rounds_ += lanes + 1;
    }
    const int64_t parts = p_.length / line_;
    if (p_.segment)
      text_ += fmt::format("  for (idx part = 0; part < {0}; ++part) {{\n  idx first = (part * {1} + row) * {2};\n",
                           parts, p_.rows(), line_);
    const bool apart = !folds.empty() && line_ >= lanes;
    const int64_t whole = apart ? line_ / lanes * lanes : 0;
    if (apart) {
      text_ += fmt::format("  for (idx turn = 0; turn < {}; turn += {}) {{\n{}", whole, lanes, marked(1));
      text_ += fmt::format("  for (int l = 0; l < {}; ++l) {{\n  idx x = turn + l;\n", lanes);
      round(stage, folds, "l");
      text_ += "  }\n  }\n";
    }
    if (whole < line_) {
      if (folds.empty() && line_ >= lanes) text_ += marked(line_ >= 4 * lanes ? 2 : 1);
      text_ += fmt::format("  for (idx x = {}; x < {}; ++x) {{\n", whole, line_);
      round(stage, folds, "0");
      text_ += "  }\n";
    }
    rounds_ += parts * (line_ + 2 * (whole / lanes) + 4) + 2;
    if (p_.segment) text_ += "  }\n";
    for (uint32_t i : folds) finish(i);
  }

  /// What precedes a loop whose rounds are independent.
  std::string marked(int64_t vectors) const {
    if (t_.language->vector_loop.empty()) return "";
    return fill(t_.language->vector_loop, {{"lanes", std::to_string(lanes)}, {"vectors", std::to_string(vectors)}});
  }

  /// What is done with element x of the row.
  void round(int stage, const std::vector<uint32_t>& folds, const char* lane) {
    for (uint32_t i : loaded_) load(i);
    text_ += compute(full_, fmt::format("v{}_", stage));
    for (uint32_t i : folds)
      text_ += fmt::format("  q{0}[{1}] = COMBINE{0}(q{0}[{1}], {2});\n", i, lane, names_[p_.code[i].a][0]);
    for (const TuttiInstr& x : p_.code)
      if (stage == last_ && x.code == TUTTI_X_RESULT && level_[x.a] == Level::full)
        text_ += fmt::format("  {}_set({}, {});\n", param(k_, "out", x.b).name,
                             p_.segment ? "first + x" : fmt::format("row * {} + x", p_.length), names_[x.a][0]);
  }

  void load(uint32_t i) {
    const uint32_t input = p_.code[i].a;
    const Param& p = k_.params[input];
    const int64_t step = p_.in[input].strides.back();
    names_[i] = {fmt::format("a{}", i)};
    const std::string at = p_.segment  ? "first + x"
                           : step == 1 ? base(input) + " + x"
                                       : fmt::format("{} + x * {}", base(input), step);
    text_ += fmt::format("  {} a{} = {}({});\n", register_type(p.element), i, p.name, at);
  }

  /// Folds the running values of a fold.
  void finish(uint32_t i) {
    text_ += fmt::format(
        "  for (int far = {0}; far > 0; far = far / 2)\n  for (int l = 0; l < far; ++l)\n"
        "  q{1}[l] = COMBINE{1}(q{1}[l], q{1}[l + far]);\n",
        lanes / 2, i);
    text_ += fmt::format("  {0} f{1} = q{1}[0]{2};\n", type(i), i, mean_of(i, p_.length));
    names_[i] = {fmt::format("f{}", i)};
    rounds_ += 2 * lanes;
  }

  Kernel& k_;
  int64_t line_;  // neighbouring elements of a row
  std::string text_;
  std::set<uint32_t> full_, loaded_;  // instructions of the loop that is written
  int64_t rounds_ = 0;
};

}  // namespace

void write_row_loops(const Target& t, const RowProgram& p, Kernel& k) { LoopWriter(t, p, k).write(); }

}  // namespace tutti::codegen
