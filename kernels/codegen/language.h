// A language that kernels are rendered to, as a record: its words, its forms, and what its compilers do on their own.
//
// A form is a text for fmt::format with the named fields that its comment lists: "vload4(i, {name}_)". A brace of the
// language itself is written twice.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti::codegen {

struct Kernel;
struct Target;

/// The definitions that every text of a language begins with: macros, types and functions, in order.
class Words {
 public:
  Words() = default;
  /// Cut before each line that begins a definition. What is named: NAME of "#define NAME" and of "type NAME(…) {".
  explicit Words(std::string_view text);
  /// Puts `definition`, whole lines, in place of all that defines `name`. Throws Error(invalid) for a name that nothing
  /// defines.
  void set(std::string_view name, std::string definition);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> definitions_;  // names, "" where a line has none, and whole lines
};

/// A form with its fields, which are names and values, filled in. Throws Error(invalid) for a form that names others.
std::string fill(const std::string& form, std::initializer_list<std::pair<const char*, std::string>> fields);

/// What rendering has to know of a language. One of your own is a copy of one of the four below with parts replaced, or
/// begins from nothing; kernels/codegen/kernel.h says which words a text may contain. A record outlives the devices
/// whose Target::language it is.
struct Language {
  std::string name;       ///< for errors: "GLSL"
  std::string extension;  ///< of a file that holds a text: "comp"

  // ---- words
  Words words;                     ///< FN, LID, BARRIER, F32, FLOAT4, MUL_HI, …
  std::string index, wide_index;   ///< define idx and IDX(x): for up to 2^31 - 1 elements, and for more
  uint64_t most_elements = ~0ull;  ///< that wide_index can number
  std::string float_of_bits;       ///< form: a float constant of {bits}, which is an unsigned literal

  // ---- the parameters' elements
  bool pointers = true;       ///< parameters are pointers, read as wider types by casts; else arrays of a buffer
  std::string address_space;  ///< of pointers: "global "
  std::string low_address;    ///< the low bits of the address `p` as an unsigned number; empty: the API sees to it
  std::string byte_type = "uchar", short_type = "ushort";  ///< 8- and 16-bit elements in memory
  std::string conversion = "{type}({value})";              ///< form: the value as a stored type
  /// Form: defines {name}4(i) and {name}4_set(i, v), four neighbours as a {type}4, and where there is a float16
  /// {name}16(i) and {name}16_set(i, v).
  std::string neighbours =
      "#define {name}4(i) (((const {type}4*){name}_)[i])\n#define {name}4_set(i, v) ((({type}4*){name}_)[i] = (v))\n";

  // ---- where parameters are no pointers
  /// Form: the array {name}{view} of {type} at {binding}; {access} is `read_only` or nothing.
  std::string buffer;
  std::string read_only;
  /// The types float4, int4 and uint4 of a second array, {name}_4_, that lies over the same binding; of narrow elements
  /// it has 32-bit words. Empty: there can be no second one; narrow elements are then parts of words.
  std::vector<std::string> views;
  std::string texels;  ///< form: a buffer of float4 at {binding} that is read by texelFetch({name}_, i); empty: none

  // ---- arithmetic
  std::string function = "{name}({arguments})";  ///< form: exp, log, … of floats
  bool own_functions = false;  ///< exp, log, … are missing or not accurate: those of kernels/portable/math.k everywhere
  /// Compilers take x * 0 and x - x for 0 and reorder sums, whatever x is, unless told otherwise: floats are PRECISE.
  bool loose_floats = false;
  /// Form: {value}, the result of one operation, out of the compiler's sight. For a language whose words cannot say
  /// PRECISE: what such a statement computes is then wrapped operation by operation, and the word itself is dropped.
  std::string kept;
  /// Forms of a kernel that must round each operation by itself: {a} and {b}. Division and square root are correctly
  /// rounded.
  std::string add = "{a} + {b}", subtract = "{a} - {b}", multiply = "{a} * {b}", divide = "div_({a}, {b})",
              root = "sqrt_({a})";
  /// Form: whether the floats {a} and {b} differ, as a NaN does from all.
  std::string unequal = "{a} != {b}";

  // ---- vectors of a CPU
  std::string splat16;            ///< what SPLAT(s) stands for: a float16 of sixteen times s; empty: no float16
  std::string masked16;           ///< what KEEP(v, lanes) stands for: float16 v where lanes (int16) are -1, else 0
  std::string address = "idx";    ///< a signed type for distances between elements that does not wrap
  bool vectorizes_items = false;  ///< a CPU's compiler puts neighbouring work-items into vectors
  /// On a CPU, the work-items of a subgroup run in step and read each other's registers by subgroupBroadcast.
  bool subgroups = false;
  bool shuffles = false;  ///< there is SHUFFLE_DOWN, where a subgroup has 32 work-items

  // ---- the kernel
  bool comment_first = true;          ///< a line that names the kernel may come before everything else
  std::string entry = "kernel_main";  ///< form: what the entry of {kernel} is called
  using Part = std::function<std::string(const Target&, const Kernel&)>;
  Part first;  ///< what comes before the words: versions, options; null: nothing
  Part open;   ///< the signature, parameters (where they are pointers) and shared arrays, up to the body
  Part close;  ///< what ends the body; null: "}"
  /// The last hand on a finished text; null: none.
  std::function<std::string(std::string text)> filter;

  bool float16() const { return !splat16.empty(); }

  // The languages of Tutti's own plugins, one file each in kernels/codegen/languages.
  static const Language& opencl_c();
  static const Language& glsl();    ///< for Vulkan: set 0, bindings in the order of the parameters
  static const Language& cuda_c();  ///< CUDA C++
  static const Language& cpp();     ///< C++14 for the host's compiler: a function per group (kernels/codegen/host.h)
};

/// Throws Error(invalid) naming a field that is missing.
void check_language(const Language& language);

}  // namespace tutti::codegen
