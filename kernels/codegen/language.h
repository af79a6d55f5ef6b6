// Record of a language that kernels are rendered to: its definitions, its forms, and properties of its compilers.
//
// A form is a text for fmt::format with the named fields listed in its comment: "vload4(i, {name}_)". Literal braces
// are doubled.
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

/// The definitions at the beginning of every text of a language: macros, types and functions, in order.
class Words {
 public:
  Words() = default;
  /// Splits the text before each line that begins a definition. Named are NAME in "#define NAME" and in "type NAME(…)
  /// {".
  explicit Words(std::string_view text);
  /// Replaces all definitions of `name` by `definition` (whole lines). Throws Error(invalid) for an undefined name.
  void set(std::string_view name, std::string definition);
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> definitions_;  // names ("" for unnamed lines) and their lines
};

/// Fills in the fields of a form. Throws Error(invalid) for a form with unknown fields.
std::string fill(const std::string& form, std::initializer_list<std::pair<const char*, std::string>> fields);

/// Definition of a language for rendering. Create a new one by copying one of the four below and replacing parts, or
/// from scratch; kernels/codegen/kernel.h lists the words that a text may contain. A record must outlive devices that
/// refer to it by Target::language.
struct Language {
  std::string name;       ///< name in errors: "GLSL"
  std::string extension;  ///< file extension of texts: "comp"

  // ---- words
  Words words;                     ///< FN, LID, BARRIER, F32, FLOAT4, MUL_HI, …
  std::string index, wide_index;   ///< definitions of idx and IDX(x), for up to 2^31 - 1 elements and for more
  uint64_t most_elements = ~0ull;  ///< largest number of elements for wide_index
  std::string float_of_bits;       ///< form: float constant from {bits}, an unsigned literal

  // ---- the parameters' elements
  bool pointers = true;       ///< parameters are pointers that can be cast to wider types; else arrays in buffers
  std::string address_space;  ///< address space of pointers: "global "
  /// Expression of the low bits of the address `p` as an unsigned number; empty: the API guarantees alignment.
  std::string low_address;
  std::string byte_type = "uchar", short_type = "ushort";  ///< 8- and 16-bit elements in memory
  std::string conversion = "{type}({value})";              ///< form: converts a value to a stored type
  /// Form: defines {name}4(i) and {name}4_set(i, v), four adjacent elements as a {type}4, and if there is a float16,
  /// {name}16(i) and {name}16_set(i, v).
  std::string neighbours =
      "#define {name}4(i) (((const {type}4*){name}_)[i])\n#define {name}4_set(i, v) ((({type}4*){name}_)[i] = (v))\n";

  // ---- if parameters are not pointers
  /// Form: declares the array {name}{view} of {type} at {binding}; {access} is `read_only` or empty.
  std::string buffer;
  std::string read_only;
  /// Element types float4, int4 and uint4 of a second array {name}_4_ with the same binding; for narrow elements it has
  /// 32-bit words. Empty: no second array is possible; narrow elements are then parts of words.
  std::vector<std::string> views;
  /// Form: declares a float4 texel buffer at {binding} for texelFetch({name}_, i); empty: unsupported.
  std::string texels;

  // ---- arithmetic
  std::string function = "{name}({arguments})";  ///< form: call of exp, log, … for floats
  bool own_functions = false;  ///< exp, log, … are missing or inaccurate: use those of kernels/portable/math.k
  /// Compilers simplify x * 0 and x - x to 0 and reorder sums unless floats are PRECISE.
  bool loose_floats = false;
  /// Form: hides {value}, the result of one operation, from the optimizer. For languages without an equivalent of
  /// PRECISE: each operation of a PRECISE statement is wrapped in it, and the word is removed.
  std::string kept;
  /// Forms with {a} and {b} for kernels that must round each operation. Division and square root are correctly rounded.
  std::string add = "{a} + {b}", subtract = "{a} - {b}", multiply = "{a} * {b}", divide = "div_({a}, {b})",
              root = "sqrt_({a})";
  /// Form: whether the floats {a} and {b} differ; true if one is NaN.
  std::string unequal = "{a} != {b}";

  // ---- CPU vectors
  std::string splat16;          ///< definition of SPLAT(s): a float16 with all elements s; empty: no float16
  std::string masked16;         ///< definition of KEEP(v, lanes): float16 v where lanes (int16) are -1, else 0
  std::string address = "idx";  ///< signed type for element offsets, wide enough not to wrap
  /// Form: a line before a loop whose rounds are independent, for vectors of {lanes} elements, {vectors} at once.
  std::string vector_loop;
  /// Where one launch may run several small kernels one after the other: the language of their texts, functions of the
  /// numbers of the group and the work-item; null: not supported.
  const Language* part = nullptr;
  bool vectorizes_items = false;  ///< the CPU compiler vectorizes over adjacent work-items
  /// On CPUs, the work-items of a subgroup run in lockstep and read each other's registers with subgroupBroadcast.
  bool subgroups = false;
  bool shuffles = false;  ///< supports SHUFFLE_DOWN if a subgroup has 32 work-items
  /// Form: defines MMA and the words listed with it in kernel.h for {type}, f16 or bf16; empty: products of warps are
  /// not supported.
  std::string tensor_cores;
  /// Form: defines COOP_MULTIPLY and the words listed with it in kernel.h for products of {m} x {n} x {k}; empty:
  /// products of subgroups are not supported.
  std::string cooperative;

  // ---- the kernel
  bool comment_first = true;          ///< the text may begin with a comment that names the kernel
  std::string entry = "kernel_main";  ///< form: name of the entry of {kernel}
  using Part = std::function<std::string(const Target&, const Kernel&)>;
  Part first;  ///< text before the words: versions, options; null: nothing
  Part open;   ///< signature, parameters (if they are pointers) and shared arrays, up to the body
  Part close;  ///< end of the body; null: "}"
  /// Post-processing of the finished text; null: none.
  std::function<std::string(std::string text)> filter;

  bool float16() const { return !splat16.empty(); }

  // The languages of Tutti's own plugins, one file each in kernels/codegen/languages.
  static const Language& opencl_c();        ///< as PoCL takes it, with parts
  static const Language& opencl_c_alone();  ///< without parts: their kernels have an assembler statement between them
  static const Language& glsl();            ///< For Vulkan: set 0, bindings in the order of the parameters.
  static const Language& cuda_c();          ///< CUDA C++
  static const Language& cpp();  ///< C++14 for the host's compiler: a function per group (kernels/codegen/host.h)
};

/// Throws Error(invalid) naming a missing field.
void check_language(const Language& language);

}  // namespace tutti::codegen
