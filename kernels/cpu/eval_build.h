// How an Eval is made: instructions are merged, split by how often they run, and given registers.
#pragma once
#include "kernels/cpu/eval.h"

namespace tutti::kernels {

class Eval::Builder {
 public:
  Builder(Eval& eval, std::span<const TuttiInstr> code, const std::vector<DType>& out, const std::vector<int>& in_place)
      : eval_(eval), code_(code), out_(out), in_place_(in_place) {}
  void build();

 private:
  /// An operation after merging equal ones: what it computes, on which operations, how often.
  struct Op {
    LaneFn fn = nullptr;  // null: an input that is read where it lies, or a constant
    uint32_t a = 0, b = 0, c = 0;
    int operands = 0;
    Access access = Access::direct;
    DType dtype = DType::f32;
    int input = -1;     // reads this input's pointer
    uint32_t last = 0;  // the last operation that reads it
    uint16_t slot = 0;
    bool has_slot = false, read = false;
    int direct_output = -1;  // computed right where this output lies
  };
  uint32_t add(Op op);
  uint32_t input(uint32_t number);
  uint32_t constant(double x, DType t);
  uint32_t compute(const TuttiInstr& i, const std::vector<uint32_t>& at);
  void collect();
  void choose_direct();
  /// Slots of constants and of what is computed once or once per row.
  void assign_scalars();
  /// The steps of a block. A result may take the register of an operand that dies with it.
  void assign_registers();
  uint16_t take_register();
  /// Stores of results that were not computed right where their outputs lie.
  void store_results();

  Eval& eval_;
  std::span<const TuttiInstr> code_;
  const std::vector<DType>& out_;
  const std::vector<int>& in_place_;
  std::vector<Op> ops_;
  std::vector<std::pair<uint32_t, uint32_t>> bits_;     // constants: operation, bits
  std::vector<std::pair<uint32_t, uint32_t>> results_;  // output, operation
  std::vector<uint16_t> free_;                          // registers
  std::vector<int64_t> loaded_;                         // per input: the operation that reads it, or -1
};

}  // namespace tutti::kernels
