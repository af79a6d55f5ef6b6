#include "kernels/codegen/signature.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/buffers.h"

namespace tutti::codegen {
namespace {

/// Parameters as OpenCL C and CUDA C++ declare them, and the shared arrays; `space` and `local` say where they lie.
std::string signature(const Target& t, const Kernel& k, const char* space, const char* restricted, const char* local) {
  std::string text;
  for (size_t i = 0; i < k.params.size(); ++i) {
    const Param& p = k.params[i];
    text += fmt::format("{}{}{}{}*{} {}_", i ? ", " : "", space, p.written ? "" : "const ", storage_type(t, p.element),
                        k.may_alias ? "" : restricted, p.name);
  }
  text += ") {\n";
  for (const std::string& x : k.shared) text += fmt::format("  {} {};\n", local, x);
  return text;
}

std::string opencl_frame(const Target& t, const Kernel& k) {
  return fmt::format("__attribute__((reqd_work_group_size({}, {}, {})))\nkernel void kernel_main(", k.local[0],
                     k.local[1], k.local[2]) +
         signature(t, k, "global ", " restrict", "local");
}

std::string cuda_frame(const Target& t, const Kernel& k) {
  uint32_t threads = k.local[0] * k.local[1] * k.local[2];
  // Tiled kernels get 64 registers: left to itself, ptxas spills some of them for the sake of more groups at once.
  std::string together = k.shared.empty() ? "" : fmt::format(", {}", std::max(1u, 1024 / threads));
  return fmt::format("extern \"C\" __global__ void __launch_bounds__({}{}) {}(", threads, together, cuda_entry(k)) +
         signature(t, k, "", " __restrict__", "__shared__");
}

std::string glsl_frame(const Kernel& k) {
  std::string text;
  for (const std::string& x : k.shared) text += "shared " + x + ";\n";
  return text + "void main() {\n";
}

bool shuffles(const Kernel& k) { return k.body.find("SHUFFLE_DOWN") != std::string::npos; }

/// The body becomes a function of one work-item; what the host calls comes behind it (cpp_close).
std::string cpp_frame(const Target& t, const Kernel& k) {
  std::string text = "struct Shared_ {\n";
  for (const std::string& x : k.shared) text += "  " + x + ";\n";
  if (shuffles(k)) text += "  uint lanes_[LOCALS];\n";
  text +=
      "};\nstatic inline void item_(void* const* buffers_, const uint* group_, const int* local_, Shared_& shared_,\n"
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
  if (shuffles(k)) text += "  auto& lanes_ = shared_.lanes_;\n";
  return text;
}

/// One group: its work-items one after the other, or where they meet at barriers or shuffles, by the caller's fibers.
std::string cpp_close(const Kernel& k) {
  bool meets = shuffles(k) || k.body.find("BARRIER") != std::string::npos;
  std::string text =
      "}\nextern \"C\" void kernel_main(void* const* buffers, const uint* group, void* shared, void (*barrier)(void*), "
      "void* fiber, const int* item) {\n  Shared_& s = *(Shared_*)shared;\n";
  if (meets) return text + "  item_(buffers, group, item, s, barrier, fiber);\n}\n";
  text += "  (void)item;\n  int l[3];\n";
  for (int d : {2, 1, 0})
    text += fmt::format("  for (l[{0}] = 0; l[{0}] < {1}; ++l[{0}])\n", d, k.local[static_cast<size_t>(d)]);
  return text + "    item_(buffers, group, l, s, barrier, fiber);\n}\n";
}

}  // namespace

std::string signature(const Target& t, const Kernel& k) {
  switch (t.language) {
    case Language::opencl_c: return opencl_frame(t, k);
    case Language::glsl: return glsl_frame(k);
    case Language::cuda_c: return cuda_frame(t, k);
    case Language::cpp: return cpp_frame(t, k);
  }
  return "";
}

std::string signature_end(const Target& t, const Kernel& k) {
  return t.language == Language::cpp ? cpp_close(k) : "}\n";
}

}  // namespace tutti::codegen
