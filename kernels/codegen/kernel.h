// A kernel in the dialect, and its rendering to a language.
//
// The dialect is what C, GLSL and CUDA C++ share: scalars int, uint, float, bool, vectors float4, int4, uint4, uint2
// (built by FLOAT4(a, b, c, d), …; members .x .y .z .w), arrays, loops, functions marked FN; no pointers, no structs.
// Beside that:
//   idx, IDX(x)             integer type of element numbers, wide enough for the kernel's tensors; conversion to it
//   F32(x) I32(x) U32(x)    conversions; AS_F32 AS_U32 AS_I32 bit casts; MUL_HI(a, b) high word of a 32x32-bit product
//   LOCAL LOCALS            number of this work-item in its group, work-items per group; LID(d), GRP(d) per dimension
//   GROUP                   number of the group counted over all dimensions; ITEM = GROUP * LOCALS + LOCAL
//   BARRIER;                all work-items of the group meet; shared arrays are visible then
//   T w = SHUFFLE_DOWN(v, d);  v (int, uint, float) of the work-item d further in its warp of 32, or its own beyond the
//                           warp; called by all of the group that still run (Target::shuffles)
//   MMA(c, n, a0, a1, a2, a3, b0, b1)    c[n … n + 3] += a b by a warp, in the layout of PTX's mma.m16n8k16.
//                           Language::tensor_cores, which some kernels get (Kernel::words), also has
//     PACK(low, high)       two floats rounded to a word of T
//     SHUFFLE_XOR(v, m)     v of the work-item whose number in the warp differs by the bits m
//     EXP2(x) LARGER(a, b)  2^x to about two units in the last place; the larger one, of a number and NaN the number
//     LOAD4(w, tile, at)    to uint w[4] four matrices of 8 x 8 T from a shared array of uint4, as PTX's ldmatrix.x4:
//                           `at` of lane 8 m + r is the place of row r of matrix m; LOAD4_TURNED: each transposed
//     COPY16(tile, to, x, at, inside)  begins to copy eight T from element `at` of parameter x, a multiple of eight, to
//                           tile[to]; unless `inside`, that becomes zeros. COPY4: one word to an array of floats
//     COPIES_WAIT           the copies that this work-item began are complete; others see them after a BARRIER
//     UNROLL                before a loop
//   COOP_MULTIPLY(a, b, c)  COOP_SUM, a b + c of a COOP_A of f16, a COOP_B of f16 and a COOP_SUM of f32, matrices that
//   a subgroup
//                           holds; called by all of it. Language::cooperative, which some kernels get, also has PACK,
//                           UNROLL,
//     COOP_TEAM             number of the subgroup in its group
//     COOP_FILL(v)          a COOP_SUM of v alone
//     COOP_LOAD_A(tile[at], order, pitch)  a COOP_A from a shared array of COOP_PAIR, two f16, on; COOP_LOAD_B: a
//     COOP_B. order
//                           0u: its rows are `pitch` pairs apart, 1u: its columns. Both are multiples of 16 bytes
//     COOP_STORE(tile[at], c, pitch)  a COOP_SUM by rows to a shared array of float
//     COOP_PAIR_OF(w) COOP_ELEMENT(tile, n)  the pair of a word; element n of an array of pairs as float
//   NAN_OF(x)               true for a NaN, whatever the compiler assumes
//   PRECISE float x = …;    computed operation by operation, on a line of its own; so are later assignments to x
// A parameter `x` is read as x(i), written as x_set(i, v): values are float for floats, int, uint (u8 too) or bool.
// Several elements at once:
//   x4(i), x4_set(i, v)     four neighbours; i counts fours; f32, i32, u32 alone
//   x_word(i), x_word_set(i, v)    one 32-bit word of narrower elements; i counts words
//   x_words2(i), x_words4(i), …    two or four words as uint2 or uint4; i counts these; not in GLSL
//   x16(i), x16_set(i, v)   sixteen f32 in a float16; OpenCL C and C++ alone
// The functions of kernels/portable/math.k can be called; only those used are rendered. "repeat r ROWS" in the header:
// each line of the body that holds {r} stands for ROWS lines, with r = 0 … ROWS - 1. The caller gives what is named by
//   value                   any text: an expression, a macro with arguments
//   number                  a whole number that the body alone uses, at run time: a literal, or where compiling is dear
//                           (Target::shares_texts) data of the launch, so that launches of other sizes share one text
//   stride                  the same, but a stride of 1 stays a literal, so that neighbours are moved together
//   data                    the same, data on every device
// A body that loops has a line "rounds EXPRESSION": at most so many rounds a work-item makes in all its loops together,
// where the last look at a condition counts as one. It is made of numbers, the names of values and numbers, LOCALS, + -
// * and a / b, which rounds up. dispatch() declines what exceeds Target::max_rounds.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/codegen/portable.h"

namespace tutti::codegen {

/// Storage type of a parameter's elements. raw16: 16-bit data that is only copied, as uint.
enum class Element { f32, i32, u32, u8, boolean, f16, bf16, raw16 };
Element element_of(DType t);       ///< Throws Error(declined) for f64 and i64.
Element raw_element(size_t size);  ///< for moving elements of 1, 2 or 4 bytes
size_t size_of(Element e);
const char* register_type(Element e);
/// Expressions that convert stored bits to a register value and back.
std::string decode(Element e, const std::string& bits);
std::string encode(Element e, const std::string& value);

struct Param {
  std::string name;
  Element element = Element::f32;
  bool written = false;
  std::string type;     ///< "f32", … or a type name bound by the caller
  bool texels = false;  ///< f32 read through a texel buffer of float4 (GLSL)
};

/// The function of set_activation().
inline constexpr const char* activation_name = "activation_";
/// Kernel::work of a row that is copied or added, beside that for its neighbours.
inline constexpr int64_t row_work = 4;
/// Whether the target has vectors for loops over so many neighbours in one work-item (CPUs).
inline bool loops_over(const Target& t, int64_t neighbours) {
  constexpr int64_t least = 8;
  return t.cpu_like && t.language->vectorizes_items && neighbours >= least;
}

/// Writes the numbers of a formula: as literals, for divisions per work-item, or as numbers of a kernel.
using Write = std::function<std::string(int64_t)>;
inline std::string as_literal(int64_t x) { return x < 0 ? "(" + std::to_string(x) + ")" : std::to_string(x); }

/// An integer of one launch.
struct Number {
  enum Kind { number, stride, data };
  std::string name;
  std::optional<int64_t> value;
  Kind kind = number;
};

/// One kernel in the dialect, the input of render().
struct Kernel {
  std::string name, file;  ///< file: "kernels/portable/gather.k"
  std::vector<Param> params;
  std::array<uint32_t, 3> local = {1, 1, 1};
  std::vector<std::pair<std::string, std::string>> values;  ///< names with their replacement texts
  std::vector<Number> numbers;
  std::vector<std::string> shared;  ///< declarations: "float tile[256]"
  std::string words;                ///< Language::tensor_cores or cooperative, if the kernel needs them
  std::string functions, body;
  std::function<std::string(const Target&, Kernel&)> write_body;  ///< if set, render() calls it for the body
  int body_line = 1;
  bool may_alias = false;  ///< outputs may share memory with inputs
  bool exact = false;
  uint32_t registers = 64;  ///< of a work-item, if the kernel has shared arrays: limits the groups per unit (CUDA)
  bool subgroups = false;   ///< GLSL: uses subgroupBroadcast
  std::vector<std::pair<std::string, std::string>> repeats;  ///< letter and value name: lines with {r} are repeated
  std::string rounds;                                        ///< expression of its loop rounds; empty: no loops
  double work = 0;        ///< of a work-item, in nanoseconds, roughly (work_of in serial.h); 0: unknown
  uint64_t elements = 0;  ///< the largest element index + 1 that IDX must hold

  /// Sets the value of a name in the text; overwrites an earlier one.
  void set(const std::string& name, const std::string& text);
  void set(const std::string& name, int64_t x);
  /// Adds a number and returns the expression that refers to it.
  std::string number(int64_t x);
  /// number() as a function; valid while the kernel is not moved.
  Write as_number() {
    return [this](int64_t x) { return number(x); };
  }
  /// Whether the text uses the value.
  bool takes(const std::string& name) const;
  /// Sets EPILOGUE(arguments), a function of v: adds `bias` at `column` and applies max(·, 0), each if requested;
  /// without a bias the bias parameter is removed. Returns whether there is a bias.
  bool set_epilogue(bool bias, bool relu, const char* arguments, const std::string& column);
  /// After it: also applies an expression to the sum, rounded to `type`; it has one result. Its inputs are that sum and
  /// `others`, expressions. Lines with KEPT(arguments), that sum, store it in the parameter `kept`; if not `keep`, or
  /// not called, drop these.
  void set_activation(const Target& target, std::span<const TuttiInstr> code, Element type, bool keep,
                      std::span<const std::pair<Element, std::string>> others);
  /// Removes a parameter that is not stored, and the values and lines that contain one of the words.
  void drop(const std::string& parameter, std::initializer_list<std::string_view> words);
  /// Reads an f32 parameter of at most `elements` elements through a texel buffer if the target prefers that.
  void read_as_texels(const Target& target, const std::string& name, int64_t elements);
};

/// The kernel in kernels/portable/NAME.k with its type names bound. Throws Error(internal) naming file and line for a
/// malformed text and for an unbound type.
Kernel portable(const std::string& name, const std::map<std::string, Element>& types = {});
/// Names of all kernel texts.
std::vector<std::string> portable_names();
/// Parses one text. `file` is used in error messages.
Kernel parse(const std::string& text, const std::string& file, const std::map<std::string, Element>& types);

/// Renders a kernel that was planned for the target.
KernelSource render(const Target& target, Kernel kernel);

/// Element indices may exceed the last element by this much; IDX must hold that too.
constexpr uint64_t index_slack = 1 << 16;

/// The longest part of a sum within the target's max_rounds if work-items make `each` rounds per `unit` and few others.
/// At least one unit: if even that exceeds the limit, dispatch() declines.
int64_t longest_part(const Target& target, int64_t each, int64_t unit);

/// Upper bound of a work-item's loop rounds; the kernel's numbers and values must be set.
double rounds_of(const Kernel& kernel);

/// A launch of `groups` groups (split over dimensions if necessary). All kernels are checked against the target's
/// limits here: throws Error(declined) for too many groups, elements, work-items per group or loop rounds.
Launch dispatch(const Target& target, Kernel kernel, uint64_t groups, std::vector<int> buffers);

/// The same with enough groups for `items` work-items.
Launch dispatch_items(const Target& target, Kernel kernel, int64_t items, std::vector<int> buffers);

/// Whether together() takes both: kernels of equally large groups, or that ask for the number of a work-item alone; of
/// equal exactness, with no function but an activation, and with little shared memory or the same text.
bool can_be_one(const Kernel& a, const Kernel& b);

/// One launch for several whose results no other of them reads. Its buffers are those of all, in order.
Launch together(const Target& target, std::span<const Launch> list);

/// Language::tensor_cores for operands of a 16-bit dtype.
std::string words_for_tensor_cores(const Target& target, DType operands);

/// A float32 constant in the language.
std::string float_literal(const Language& language, float x);

}  // namespace tutti::codegen
