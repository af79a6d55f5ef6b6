// What differs between the languages: the words of the prelude, the declarations of buffers, and the kernel's frame.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <regex>
#include <sstream>

#include "core/base/status.h"
#include "kernels/dialect/kernel.h"

namespace tutti::dialect {
namespace {

constexpr const char* opencl_words = R"(#define FN static inline
#define PRECISE
#define LID(d) ((int)get_local_id(d))
#define GRP(d) ((int)get_group_id(d))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define F32(x) ((float)(x))
#define I32(x) ((int)(x))
#define U32(x) ((uint)(x))
#define AS_F32(x) as_float(x)
#define AS_I32(x) as_int(x)
#define AS_U32(x) as_uint(x)
#define MUL_HI(a, b) mul_hi((uint)(a), (uint)(b))
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) ((float4)(a, b, c, d))
#define INT4(a, b, c, d) ((int4)(a, b, c, d))
#define UINT4(a, b, c, d) ((uint4)(a, b, c, d))
#define UINT2(a, b) ((uint2)(a, b))
)";

constexpr const char* glsl_words = R"(#define FN
#define PRECISE precise
#define LID(d) int(gl_LocalInvocationID[d])
#define GRP(d) int(gl_WorkGroupID[d])
#define BARRIER barrier()
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
#define AS_F32(x) uintBitsToFloat(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define NAN_OF(x) ((floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u)
#define float4 vec4
#define int4 ivec4
#define uint4 uvec4
#define uint2 uvec2
#define FLOAT4(a, b, c, d) vec4(a, b, c, d)
#define INT4(a, b, c, d) ivec4(a, b, c, d)
#define UINT4(a, b, c, d) uvec4(a, b, c, d)
#define UINT2(a, b) uvec2(a, b)
uint as_u32_(float x) { return floatBitsToUint(x); }
uint as_u32_(int x) { return uint(x); }
uint MUL_HI(uint a, uint b) {
  uint high, low;
  umulExtended(a, b, high, low);
  return high;
}
)";

constexpr const char* cuda_words = R"(typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
#define FN static __device__ __forceinline__
#define PRECISE
__device__ __forceinline__ int lid_(int d) { return d == 0 ? threadIdx.x : d == 1 ? threadIdx.y : threadIdx.z; }
__device__ __forceinline__ int grp_(int d) { return d == 0 ? blockIdx.x : d == 1 ? blockIdx.y : blockIdx.z; }
#define LID(d) lid_(d)
#define GRP(d) grp_(d)
#define BARRIER __syncthreads()
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
__device__ __forceinline__ float as_f32_(uint x) { return __uint_as_float(x); }
__device__ __forceinline__ uint as_u32_(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint as_u32_(int x) { return uint(x); }
#define AS_F32(x) as_f32_(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define MUL_HI(a, b) __umulhi(a, b)
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) make_float4(a, b, c, d)
#define INT4(a, b, c, d) make_int4(a, b, c, d)
#define UINT4(a, b, c, d) make_uint4(a, b, c, d)
#define UINT2(a, b) make_uint2(a, b)
)";

constexpr const char* cpp_words = R"(#include <cmath>
#include <cstdint>
#include <cstring>
typedef uint32_t uint;
typedef uint8_t uchar;
typedef uint16_t ushort;
struct float4 { float x, y, z, w; };
struct int4 { int x, y, z, w; };
struct uint4 { uint x, y, z, w; };
struct uint2 { uint x, y; };
#define FN static inline
#define PRECISE
#define LID(d) (local_[d])
#define GRP(d) (I32(group_[d]))
#define BARRIER barrier_(fiber_)
#define F32(x) float(x)
#define I32(x) int(x)
#define U32(x) uint(x)
static inline float as_f32_(uint x) { float y; std::memcpy(&y, &x, 4); return y; }
static inline uint as_u32_(float x) { uint y; std::memcpy(&y, &x, 4); return y; }
static inline uint as_u32_(int x) { return uint(x); }
#define AS_F32(x) as_f32_(x)
#define AS_I32(x) int(x)
#define AS_U32(x) as_u32_(x)
#define MUL_HI(a, b) uint(uint64_t(a) * uint64_t(b) >> 32)
#define NAN_OF(x) ((x) != (x))
#define FLOAT4(a, b, c, d) (float4{a, b, c, d})
#define INT4(a, b, c, d) (int4{a, b, c, d})
#define UINT4(a, b, c, d) (uint4{a, b, c, d})
#define UINT2(a, b) (uint2{a, b})
using std::fma; using std::floor; using std::sqrt; using std::exp; using std::log; using std::tanh; using std::sin; using std::cos;
using std::pow; using std::fabs; using std::expm1; using std::log1p; using std::erf;
)";

/// The functions of kernels/portable/math.k that a text calls, and those that they call, in the order of the file.
/// Paragraphs of the file are taken whole.
std::string functions_for(const std::string& text) {
  struct Part {
    std::string text;
    std::vector<std::string> names;
    bool taken = false;
  };
  static const std::vector<Part> all = [] {
    std::vector<Part> parts;
    std::string body = portable("math").body;
    static const std::regex name("\\nFN [a-z]+ ([a-z0-9_]+)\\(");
    for (size_t at = 0; at < body.size();) {
      size_t end = std::min(body.find("\n\n", at), body.size());
      Part p{"\n" + body.substr(at, end - at) + "\n", {}};
      for (std::sregex_iterator m(p.text.begin(), p.text.end(), name), last; m != last; ++m) p.names.push_back((*m)[1]);
      parts.push_back(p);
      at = end + 2;
    }
    return parts;
  }();
  auto calls = [](const std::string& in, const std::string& f) {
    for (size_t at = in.find(f + "("); at != std::string::npos; at = in.find(f + "(", at + 1))
      if (at == 0 || !(std::isalnum(static_cast<unsigned char>(in[at - 1])) || in[at - 1] == '_')) return true;
    return false;
  };
  std::vector<Part> parts = all;
  std::vector<const std::string*> open = {&text};
  while (!open.empty()) {
    const std::string& from = *open.back();
    open.pop_back();
    for (Part& p : parts)
      if (!p.taken && std::any_of(p.names.begin(), p.names.end(), [&](auto& f) { return calls(from, f); })) {
        p.taken = true;
        open.push_back(&p.text);
      }
  }
  std::string result;
  for (const Part& p : parts)
    if (p.taken) result += p.text;
  return result;
}

/// The body with its repeated lines written out.
std::string written_out(const Kernel& k) {
  std::string body = k.body;
  for (auto& [letter, count] : k.repeats) {
    auto value = std::find_if(k.values.begin(), k.values.end(), [&, name = count](auto& v) { return v.first == name; });
    if (value == k.values.end()) throw Error(Code::internal, fmt::format("{}: kernel {}: {} has no value", k.file, k.name, count));
    std::string mark = "{" + letter + "}", to;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
      bool many = line.find(mark) != std::string::npos;
      for (int n = 0; n < (many ? std::stoi(value->second) : 1); ++n) {
        std::string one = line;
        for (size_t at = one.find(mark); at != std::string::npos; at = one.find(mark, at)) one.replace(at, mark.size(), std::to_string(n));
        to += one + "\n";
      }
    }
    body = to;
  }
  return body;
}

/// How a stored element is named in the buffer's declaration.
std::string storage_type(const Target& t, Element e) {
  bool glsl = t.language == Language::glsl;
  switch (size_of(e)) {
    case 1: return !glsl ? "uchar" : t.byte_storage ? "uint8_t" : "uint";
    case 2: return !glsl ? "ushort" : t.half_storage ? "uint16_t" : "uint";
    default: return register_type(e);
  }
}

bool packed(const Target& t, Element e) {
  return t.language == Language::glsl && ((size_of(e) == 1 && !t.byte_storage) || (size_of(e) == 2 && !t.half_storage));
}

/// The register value of stored bits, and the stored bits of a register value.
std::string decode(Element e, const std::string& bits) {
  switch (e) {
    case Element::boolean: return fmt::format("({} != 0u)", bits);
    case Element::f16: return fmt::format("half_to_({})", bits);
    case Element::bf16: return fmt::format("bhalf_to_({})", bits);
    default: return bits;
  }
}
std::string encode(Element e, const std::string& value) {
  switch (e) {
    case Element::boolean: return fmt::format("(({}) ? 1u : 0u)", value);
    case Element::f16: return fmt::format("half_of_({})", value);
    case Element::bf16: return fmt::format("bhalf_of_({})", value);
    default: return fmt::format("({})", value);
  }
}

/// The macros NAME(i), NAME_set(i, v), NAME4, … of one parameter.
std::string access(const Target& t, const Param& p) {
  std::string text, n = p.name;
  size_t size = size_of(p.element);
  bool glsl = t.language == Language::glsl;
  if (p.texels)
    return fmt::format("#define {0}(i) texelFetch({0}_, int(i) >> 2)[int(i) & 3]\n#define {0}4(i) texelFetch({0}_, int(i))\n", n);
  if (packed(t, p.element)) {  // words: part j of a word, moved by atomics whose bits do not overlap
    uint32_t per = static_cast<uint32_t>(4 / size), bits = static_cast<uint32_t>(8 * size), mask = size == 1 ? 255 : 65535;
    text += fmt::format("uint {}_part_(uint i) {{ return ({}_[i / {}u] >> (i % {}u * {}u)) & {}u; }}\n", n, n, per, per, bits, mask);
    text += fmt::format("#define {}(i) {}\n", n, decode(p.element, n + "_part_(uint(i))"));
    if (p.written) {
      text += fmt::format(
          "void {0}_put_(uint i, uint v) {{\n  uint s = i % {1}u * {2}u;\n  atomicAnd({0}_[i / {1}u], ~({3}u << s));\n"
          "  atomicOr({0}_[i / {1}u], (v & {3}u) << s);\n}}\n",
          n, per, bits, mask);
      text += fmt::format("#define {}_set(i, v) {}_put_(uint(i), {})\n", n, n, encode(p.element, "v"));
    }
    text += fmt::format("#define {}_word(i) {}_[i]\n#define {}_word_set(i, v) {}_[i] = (v)\n", n, n, n, n);
    return text;
  }
  if (size == 4) {
    text += fmt::format("#define {}(i) {}_[i]\n#define {}_set(i, v) {}_[i] = (v)\n", n, n, n, n);
    std::string v = register_type(p.element);
    switch (t.language) {
      case Language::opencl_c:
        text += fmt::format("#define {0}4(i) vload4(i, {0}_)\n#define {0}4_set(i, v) vstore4(v, i, {0}_)\n", n);
        text += fmt::format("#define {0}16(i) vload16(i, {0}_)\n#define {0}16_set(i, v) vstore16(v, i, {0}_)\n", n);
        break;
      case Language::cuda_c:
      case Language::cpp:
        text += fmt::format("#define {0}4(i) (((const {1}4*){0}_)[i])\n#define {0}4_set(i, v) ((({1}4*){0}_)[i] = (v))\n", n, v);
        break;
      case Language::glsl: text += fmt::format("#define {0}4(i) {0}_4_[i]\n#define {0}4_set(i, v) {0}_4_[i] = (v)\n", n); break;
    }
    return text;
  }
  std::string stored = storage_type(t, p.element);
  text += fmt::format("#define {}(i) {}\n", n, decode(p.element, fmt::format("U32({}_[i])", n)));
  text += fmt::format("#define {0}_set(i, v) {0}_[i] = {1}\n", n,
                      t.language == Language::opencl_c ? fmt::format("({})({})", stored, encode(p.element, "v"))
                                                       : fmt::format("{}({})", stored, encode(p.element, "v")));
  std::string word = glsl ? n + "_4_[i]"
                     : t.language == Language::opencl_c ? fmt::format("((global {}uint*){}_)[i]", p.written ? "" : "const ", n)
                                                        : fmt::format("(({}uint*){}_)[i]", p.written ? "" : "const ", n);
  text += fmt::format("#define {0}_word(i) {1}\n#define {0}_word_set(i, v) {1} = (v)\n", n, word);
  return text;
}

std::string glsl_buffers(const Target& t, const Kernel& k) {
  std::string text;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    if (p.texels) {
      text += fmt::format("layout(set = 0, binding = {}) uniform samplerBuffer {}_;\n", i, p.name);
      continue;
    }
    const char* only = p.written ? "" : "readonly ";
    auto declare = [&](const std::string& type, const char* view) {
      text += fmt::format("layout(std430, set = 0, binding = {}) {}buffer {}{}buffer_ {{ {} {}{}[]; }};\n", i, only, p.name, view, type, p.name, view);
    };
    declare(storage_type(t, p.element), "_");
    // A second view of the same binding: four neighbours, or words.
    if (size_of(p.element) == 4) {
      std::string r = register_type(p.element);
      declare(r == "float" ? "vec4" : r == "int" ? "ivec4" : "uvec4", "_4_");
    } else if (!packed(t, p.element)) {
      declare("uint", "_4_");
    }
  }
  return text;
}

/// The body becomes a function of one work-item; what the host calls comes behind it (cpp_close).
std::string cpp_frame(const Target& t, const Kernel& k) {
  std::string text = "struct Shared_ {\n";
  for (const std::string& x : k.shared) text += "  " + x + ";\n";
  text += "};\nstatic inline void item_(void* const* buffers_, const uint* group_, const int* local_, Shared_& shared_,\n"
          "                         void (*barrier_)(void*), void* fiber_) {\n  (void)group_, (void)local_, (void)shared_, "
          "(void)barrier_, (void)fiber_;\n";
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    std::string type = fmt::format("{}{}*", p.written ? "" : "const ", storage_type(t, p.element));
    text += fmt::format("  {}{} {}_ = ({})buffers_[{}];\n", type, k.may_alias ? "" : " __restrict__", p.name, type, i);
  }
  for (const std::string& x : k.shared) {
    std::string name = x.substr(0, x.find('['));
    name = name.substr(name.find(' ') + 1);
    text += fmt::format("  auto& {0} = shared_.{0};\n", name);
  }
  return text;
}

/// One group: its work-items one after the other, or where they meet at barriers, by the caller's fibers.
std::string cpp_close(const Kernel& k) {
  bool meets = k.body.find("BARRIER") != std::string::npos;
  std::string text = "}\nextern \"C\" void kernel_main(void* const* buffers, const uint* group, void* shared, void (*barrier)(void*), "
                     "void* fiber, const int* item) {\n  Shared_& s = *(Shared_*)shared;\n";
  if (meets) return text + "  item_(buffers, group, item, s, barrier, fiber);\n}\n";
  text += "  (void)item;\n  int l[3];\n";
  for (int d : {2, 1, 0}) text += fmt::format("  for (l[{0}] = 0; l[{0}] < {1}; ++l[{0}])\n", d, k.local[static_cast<size_t>(d)]);
  return text + "    item_(buffers, group, l, s, barrier, fiber);\n}\n";
}

}  // namespace

std::string float_literal(Language language, float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (!std::isfinite(x) || (x != 0 && std::fabs(x) < 1.1754944e-38f) || bits == 0x80000000u) {
    const char* form = language == Language::opencl_c ? "as_float(0x{:08x}u)"
                       : language == Language::glsl   ? "uintBitsToFloat(0x{:08x}u)"
                       : language == Language::cpp    ? "as_f32_(0x{:08x}u)"
                                                      : "__uint_as_float(0x{:08x}u)";
    return fmt::format(fmt::runtime(form), bits);
  }
  std::string s = fmt::format("{:.9g}", x);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return x < 0 ? "(" + s + "f)" : s + "f";
}

Source render(const Target& t, const Kernel& k) {
  Source s;
  s.local = k.local;
  s.exact = k.exact;
  bool bytes = false, halves = false;
  for (const Param& p : k.params) {
    s.written.push_back(p.written);
    s.texels.push_back(p.texels);
    bytes = bytes || (size_of(p.element) == 1 && !packed(t, p.element));
    halves = halves || (size_of(p.element) == 2 && !packed(t, p.element));
  }
  bool wide = k.elements > 0x7fffffffu;
  std::string head, frame, close = "}\n";
  switch (t.language) {
    case Language::opencl_c: {
      head = fmt::format("#pragma OPENCL FP_CONTRACT {}\n", k.exact ? "OFF" : "ON") + opencl_words;
      head += wide ? "#define IDX(x) ((long)(x))\ntypedef long idx;\n" : "#define IDX(x) ((int)(x))\ntypedef int idx;\n";
      frame = fmt::format("__attribute__((reqd_work_group_size({}, {}, {})))\nkernel void kernel_main(", k.local[0], k.local[1], k.local[2]);
      for (size_t i = 0; i < k.params.size(); ++i) {
        const Param& p = k.params[i];
        frame += fmt::format("{}global {}{}*{} {}_", i ? ", " : "", p.written ? "" : "const ", storage_type(t, p.element),
                             k.may_alias ? "" : " restrict", p.name);
      }
      frame += ") {\n";
      for (const std::string& x : k.shared) frame += "  local " + x + ";\n";
      break;
    }
    case Language::cuda_c: {
      head = cuda_words;
      head += wide ? "typedef long long idx;\n#define IDX(x) ((long long)(x))\n" : "typedef int idx;\n#define IDX(x) int(x)\n";
      frame = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) kernel_main(", k.local[0] * k.local[1] * k.local[2]);
      for (size_t i = 0; i < k.params.size(); ++i) {
        const Param& p = k.params[i];
        frame += fmt::format("{}{}{}*{} {}_", i ? ", " : "", p.written ? "" : "const ", storage_type(t, p.element),
                             k.may_alias ? "" : " __restrict__", p.name);
      }
      frame += ") {\n";
      for (const std::string& x : k.shared) frame += "  __shared__ " + x + ";\n";
      break;
    }
    case Language::cpp: {
      head = cpp_words;
      head += wide ? "typedef int64_t idx;\n#define IDX(x) int64_t(x)\n" : "typedef int idx;\n#define IDX(x) int(x)\n";
      frame = cpp_frame(t, k);
      close = cpp_close(k);
      break;
    }
    case Language::glsl: {
      if (k.elements > 0xffffffffu)
        throw Error(Code::declined, fmt::format("kernel {}: {} elements are more than GLSL can number", k.name, k.elements));
      s.entry = "main";
      head = "#version 450\n";
      if (k.subgroups) head += "#extension GL_KHR_shader_subgroup_ballot : require\n";
      if (bytes) head += "#extension GL_EXT_shader_8bit_storage : require\n";
      if (halves) head += "#extension GL_EXT_shader_16bit_storage : require\n";
      head += fmt::format("layout(local_size_x = {}, local_size_y = {}, local_size_z = {}) in;\n", k.local[0], k.local[1], k.local[2]);
      head += glsl_words;
      head += wide ? "#define idx uint\n#define IDX(x) uint(x)\n" : "#define idx int\n#define IDX(x) int(x)\n";
      head += glsl_buffers(t, k);
      for (const std::string& x : k.shared) frame += "shared " + x + ";\n";
      frame += "void main() {\n";
      break;
    }
  }
  uint32_t locals = k.local[0] * k.local[1] * k.local[2];
  head += fmt::format("#define LOCALS {}\n", locals);
  head += k.local[1] * k.local[2] == 1
              ? "#define LOCAL LID(0)\n"
              : fmt::format("#define LOCAL (LID(0) + {} * (LID(1) + {} * LID(2)))\n", k.local[0], k.local[1]);
  head += "#define ITEM (GROUP * LOCALS + LOCAL)\n";
  std::string text;
  for (const Param& p : k.params) {
    text += access(t, p);
    if (!p.type.empty() && p.type[0] >= 'A' && p.type[0] <= 'Z') {
      std::string define = fmt::format("#define {} {}\n", p.type, register_type(p.element));
      if (text.find(define) == std::string::npos) text += define;
    }
  }
  for (auto& [name, value] : k.values) {
    if (value.empty()) throw Error(Code::internal, fmt::format("{}: kernel {}: {} has no value", k.file, k.name, name));
    text += fmt::format("#define {} {}\n", name, value);
  }
  text += k.functions + frame + written_out(k) + close;
  s.text = fmt::format("// {}{}{}\n", k.name, k.file.empty() ? "" : ", from ", k.file);
  if (t.language == Language::glsl) s.text.clear();  // #version comes first
  s.text += head + functions_for(text) + text;
  return s;
}

}  // namespace tutti::dialect
