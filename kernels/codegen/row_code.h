// Internal: what the kernels of a row program share: how rows are divided, and statements for instructions.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/geometry/reduction.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// How work-items combine their parts of a row.
enum class Meet {
  tree,   ///< in shared memory
  lanes,  ///< registers of a subgroup (lavapipe)
  alone,  ///< a work-item has the row for itself: row_loops.h
};

/// How a row is divided: `span` work-items of `lanes` adjacent elements each, in one step if `held`.
struct Division {
  int64_t span = 1, lanes = 1, rows_per_group = 1;
  Meet meet = Meet::tree;
  bool held = true;
  int64_t tiles = 1;  ///< pieces of a row, for different groups: only if no row is folded
  /// Only if columns are folded: groups (per tile) that share the rows among them, each taking several in turn. Each
  /// gives one partial result per column; if there are several, a second kernel folds them.
  int64_t parts = 0;
  /// Groups that share a row, whose elements they take in turn. If several, each stage of folds is a kernel, which
  /// stores a partial result per group; the next one folds these.
  int64_t shares = 1;
  int64_t apart = 1;  ///< if not held: such pieces of a row that a work-item loads before it computes with them
};
/// None if the target has no kernel.
std::optional<Division> division_of(const Target& t, const RowForm& form);

/// Which values an instruction has: one, one per row, one per element, or one per column (of all rows together).
enum class Level { constant, row, full, column };

/// The instructions of a row program and, per instruction, the names of its values in a kernel's text.
class RowCode {
 public:
  /// Throws Error(internal) for folds of other values than elements of rows.
  RowCode(const Target& t, const RowProgram& p);

  bool any(uint16_t code) const;
  Level level(uint32_t i) const { return level_[i]; }
  /// Whether an instruction of Level::row is computed for results per row alone.
  bool late(uint32_t i) const { return level_[i] <= Level::row && !early_[i]; }
  /// Whether an input has one element per column and is read for results per column alone.
  bool for_columns_alone(uint32_t i) const { return p_.in[p_.code[i].a].strides.back() != 0 && !outside_[i]; }
  RowForm form() const;
  int stages() const { return last_ + 1; }
  /// The folds of rows whose operands are complete in a stage.
  std::vector<uint32_t> folds_of(int stage) const;
  std::vector<uint32_t> column_folds() const;
  /// The inputs that are read to compute with columns.
  std::set<uint32_t> column_inputs() const;

 protected:
  /// Whether the instruction is computed by statements().
  bool computed(uint32_t i) const;

  DType register_dtype(uint32_t fold) const;
  const char* type(uint32_t fold) const { return register_type(element_of(register_dtype(fold))); }
  ReduceOp kind(uint32_t fold) const { return static_cast<ReduceOp>(p_.code[fold].b); }
  std::string init(uint32_t fold) const;
  /// Defines COMBINE of a fold.
  void define(Kernel& k, uint32_t fold) const;
  std::string combined(uint32_t fold, std::vector<std::string> parts) const;
  /// " / n" for a mean of n elements.
  std::string mean_of(uint32_t fold, int64_t n) const;

  const Param& param(const Kernel& k, const char* direction, uint32_t number) const;
  std::vector<std::string> lanes_of(uint32_t i, int64_t lanes) const;
  /// Statements for `wanted` instructions, in the program's order; all others that they read have names.
  std::string compute(const std::set<uint32_t>& wanted, const std::string& prefix);
  /// Computes and stores what follows from the column folds, which have names, for `lanes` columns from `x` on.
  std::string finish_columns(const Kernel& k, int64_t lanes);
  /// Statements for c0 …: the coordinates of `row`.
  std::string coordinates() const;
  /// Where an input's first element of the row lies.
  std::string base(uint32_t input) const;
  /// The statement that loads an input with one element per row.
  std::string load_scalar(const Kernel& k, uint32_t i);
  /// Adds a full-level instruction and those that it reads.
  void need(uint32_t i, std::set<uint32_t>& full, std::set<uint32_t>& loaded) const;

  const Target& t_;
  const RowProgram& p_;
  std::vector<Level> level_;
  std::vector<int> stage_;     // number of folds of rows that must come before
  std::vector<bool> early_;    // whether elements or folds are computed with the instruction
  std::vector<bool> outside_;  // the same of anything but values per column
  int last_ = 0;
  std::vector<std::vector<std::string>> names_;
  std::vector<Shape> strides_;  // of each input over the rows' merged dimensions

 private:
  void place(uint32_t i);
  void mark_early();
  void merge_outer();
  /// The INPUT instructions that instructions of Level::column read.
  std::set<uint32_t> column_reads() const;
  std::string constant(const TuttiInstr& x) const;

  Shape outer_;  // dimensions of the rows, merged
};

/// Writes the kernel that folds the partial results of all column folds.
class ColumnWriter : RowCode {
 public:
  ColumnWriter(const Target& t, const RowProgram& p, int64_t parts, Kernel& k) : RowCode(t, p), parts_(parts), k_(k) {}
  static constexpr int64_t columns = 8;  ///< of a group
  void write();

 private:
  int64_t parts_;
  Kernel& k_;
};

}  // namespace tutti::codegen
