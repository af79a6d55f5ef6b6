// From the text of an instruction to its handler and operands.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/softcuda/ptx.h"

namespace tutti::softcuda {

/// Makes the instructions of one function; knows its registers and symbols.
class Decoder {
 public:
  explicit Decoder(Function& function) : function_(function) {}
  /// `count` registers name0, name1, …; without a count, the one of that name.
  void declare(const std::string& name, Type type, int count);
  /// A variable's address.
  void symbol(const std::string& name, uint64_t address) { symbols_[name] = address; }
  /// Appends an instruction, without its ';'. Throws InvalidPtx.
  void instruction(std::string_view text);
  /// The next instruction is that label's.
  void label(const std::string& name);
  /// Resolves the branches; to be called at the end.
  void finish();

 private:
  struct Register {
    int slot;
    bool wide;
  };
  using Operands = std::vector<std::string>;

  int allot(bool wide);
  const Register& find(const std::string& name);
  int destination(const std::string& name, Type type);
  int source(const std::string& text, Type type);
  int constant(uint64_t bits, bool wide);
  uint64_t immediate(const std::string& text) const;
  void address(const std::string& text, Instruction& i);
  bool special(std::string_view opcode, const Operands& operands, Instruction& i);
  void move_halves(const Operands& operands, Instruction& i);
  void load_parameter(std::string_view opcode, const Operands& operands, Instruction& i);
  void access(std::string_view opcode, const Operands& operands, Instruction& i);
  void shuffle(const Operands& operands, Instruction& i);
  void product(const Operands& operands, Instruction& i);
  void matrices(std::string_view opcode, const Operands& operands, Instruction& i);
  void copy(std::string_view opcode, const Operands& operands, Instruction& i);
  void branch(const std::string& to, Instruction& i);

  Function& function_;
  std::string text_;  ///< of the instruction
  std::map<std::string, Register> registers_;
  std::map<std::string, uint64_t> symbols_;
  std::map<std::pair<uint64_t, bool>, int> constants_;
  std::map<std::string, int> labels_;
  std::vector<std::pair<size_t, std::string>> jumps_;
};

/// An instruction that only reads and writes registers.
struct Opcode {
  Handler run;
  std::vector<Type> operands;  ///< the first is the result's
  Rounding rounding = Rounding::none;
};
using Opcodes = std::map<std::string, Opcode, std::less<>>;
/// By full name, "mul.wide.s32".
const Opcodes& opcodes();
// The parts of that table, each in its file.
void add_arithmetic(Opcodes& table);
void add_logic(Opcodes& table);
void add_comparisons(Opcodes& table);
void add_conversions(Opcodes& table);
void add_functions(Opcodes& table);
void add_pairs(Opcodes& table);

/// Loads or stores of elements of a type from or to registers of that width; null: there is none.
Handler access_handler(bool store, Type element, bool wide);
/// ld.param of 4 or 8 bytes.
Handler parameter_handler(Type type);
void shuffle_down(Warp& w, const Instruction& i);
void shuffle_butterfly(Warp& w, const Instruction& i);
/// A product of a warp; null: there is none of that name.
Handler product_handler(std::string_view opcode);
/// A load of matrices by a warp; null: there is none of that name.
Handler matrices_handler(std::string_view opcode);
void copy_source(Warp& w, const Instruction& i);
void copy_begin(Warp& w, const Instruction& i);
void copies_wait(Warp& w, const Instruction& i);
void pack_halves(Warp& w, const Instruction& i);
void unpack_halves(Warp& w, const Instruction& i);

}  // namespace tutti::softcuda
