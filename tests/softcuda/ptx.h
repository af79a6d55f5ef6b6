// PTX as NVRTC writes it, decoded so that 32 lanes execute an instruction by one call.
#pragma once
#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::softcuda {

/// What a kernel or a copy did wrong; the driver's result and every later one.
struct Fault : std::runtime_error {
  Fault(CUresult with, const std::string& text) : std::runtime_error(text), result(with) {}
  CUresult result;
};

/// PTX that cannot be executed: it names the line and what is missing.
struct InvalidPtx : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Type : uint8_t { none, pred, b8, b16, b32, b64, u8, u16, u32, u64, s8, s16, s32, s64, f32, f64 };
/// none for another word.
Type type_named(std::string_view name);
unsigned bytes_of(Type type);
/// Registers of 8 bytes take two slots.
inline bool is_wide(Type type) { return bytes_of(type) == 8; }

constexpr int lanes = 32;
/// Where the windows of shared and local memory begin in a kernel's address space.
constexpr uint64_t shared_window = 0x1000000, local_window = 0x2000000;

struct Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&);

/// What an instruction does to the program counter; `next` instructions have a handler.
enum class Flow : uint8_t { next, branch, barrier, exit };
enum class Space : uint8_t { global, shared, local };
enum class Rounding : uint8_t { none, nearest, zero, down, up };

/// Registers and constants are numbers of slots; a slot is one 32-bit word of each lane.
struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::next;
  Space space = Space::global;
  Rounding rounding = Rounding::none;
  bool negated = false;   ///< of the guard
  bool base_wide = true;  ///< the base register of an address has 64 bits
  uint8_t count = 1;      ///< elements of a vector access
  int guard = -1;         ///< predicate's slot
  int d = -1, d2 = -1;    ///< results
  int a = -1, b = -1, c = -1, e = -1;
  std::array<int, 4> data = {-1, -1, -1, -1};  ///< registers that are loaded, stored or packed
  std::array<int, 14> matrix = {};             ///< registers of a product: results, a, b, summands
  int base = -1;                               ///< of an address; -1: none
  int64_t offset = 0;
  int target = -1;  ///< of a branch
};

struct Parameter {
  std::string name;
  unsigned offset = 0, bytes = 0;
};
struct Constant {
  int slot = 0;
  bool wide = false;
  uint64_t bits = 0;
};
/// %tid.x and others: set per warp and block.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid
};
struct SpecialRegister {
  Special which;
  int slot;
};

/// A kernel.
struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  unsigned parameter_bytes = 0, shared_bytes = 0, local_bytes = 0;
  unsigned most_threads = 1024;  ///< .maxntid
  int slots = 0;
  std::vector<Instruction> code;
  std::vector<bool> joins;         ///< per instruction: lanes of several paths may meet here
  std::vector<std::string> texts;  ///< per instruction, for messages
  std::vector<Constant> constants;
  std::vector<SpecialRegister> specials;
};

/// Constant data of a module, at its address.
struct Data {
  std::string name;
  std::vector<unsigned char> bytes;
  unsigned alignment = 1;
  std::unique_ptr<unsigned char[]> memory;
  uint64_t address = 0;
};

struct Module {
  std::map<std::string, Function, std::less<>> functions;
  std::map<std::string, Data, std::less<>> data;
};

/// Throws InvalidPtx.
std::unique_ptr<Module> parse(std::string_view text);

}  // namespace tutti::softcuda
