// Builds an Eval: merges equal instructions, classifies them by how often they run, and assigns registers.
#pragma once
#include "kernels/cpu/eval.h"

namespace tutti::kernels {

class Eval::Builder {
 public:
  Builder(Eval& eval, std::span<const TuttiInstr> code, const std::vector<DType>& out, const std::vector<int>& in_place,
          bool exact)
      : eval_(eval), code_(code), out_(out), in_place_(in_place), exact_(exact) {}
  void build();

 private:
  /// An operation after merging equal ones: its function, operands and frequency.
  struct Op {
    LaneFn fn = nullptr;  // null: an input read in place, or a constant
    uint32_t a = 0, b = 0, c = 0;
    int operands = 0;
    Access access = Access::direct;
    DType dtype = DType::f32;
    int input = -1;     // reads this input's pointer
    uint32_t last = 0;  // the last operation that reads it
    uint16_t slot = 0;
    bool has_slot = false, read = false;
    int direct_output = -1;  // computed directly into this output
  };
  uint32_t add(Op op);
  uint32_t input(uint32_t number);
  uint32_t constant(double x, DType t);
  uint32_t compute(const TuttiInstr& i, const std::vector<uint32_t>& at);
  void collect();
  void choose_direct();
  /// Assigns slots to constants and to operations that run once or once per row.
  void assign_scalars();
  /// Creates the steps of a block. A result may reuse the register of an operand whose last use it is.
  void assign_registers();
  uint16_t take_register();
  /// Adds stores of results that were not computed directly into outputs.
  void store_results();

  Eval& eval_;
  std::span<const TuttiInstr> code_;
  const std::vector<DType>& out_;
  const std::vector<int>& in_place_;
  bool exact_;
  std::vector<Op> ops_;
  std::vector<std::pair<uint32_t, uint32_t>> bits_;     // operation and bits of constants
  std::vector<std::pair<uint32_t, uint32_t>> results_;  // output, operation
  std::vector<uint16_t> free_;                          // registers
  std::vector<int64_t> loaded_;                         // per input: the operation that reads it, or -1
};

}  // namespace tutti::kernels
