// Kernels that run oneDNN's primitives.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "backends/onednn/desc.h"
#include "backends/onednn/openmp.h"

namespace tutti::onednn {

/// A kernel that runs one oneDNN primitive. Arguments map inputs and results to the primitive's arguments.
class PrimitiveKernel : public Kernel {
 public:
  struct Argument {
    int id;         ///< DNNL_ARG_…
    bool result;    ///< a result, else an input
    uint32_t slot;  ///< its index
    Desc desc;      ///< descriptor for the primitive
  };
  /// `threads`: number of threads for the primitive (small problems are slower on several).
  PrimitiveKernel(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments, int threads,
                  int session_threads);
  void bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) override;
  void run() override;

 private:
  dnnl::primitive primitive_;
  std::vector<Argument> arguments_;
  Desc scratchpad_;
  int threads_, session_threads_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> bound_;
};

/// oneDNN's CPU engine and in-order stream of this process.
const dnnl::engine& engine();
const dnnl::stream& stream();
/// Attributes of all primitives: the caller provides scratch memory. Throws Error(no_memory) where so little memory is
/// left that creating a primitive could crash: oneDNN does not check all of its allocations.
dnnl::primitive_attr attributes();

/// "" or the reason why a primitive cannot be created; `f` creates its descriptor, which may be empty.
template <class F>
MatchResult declines_primitive(F&& f) {
  try {
    return f() ? "" : "oneDNN has no implementation for this node";
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_out_of_memory) throw Error(Code::no_memory, e.what(), "use a smaller batch or model");
    return e.what();
  }
}
/// Whether a primitive of type `t` is oneDNN's reference implementation and should be avoided: for f16 and bf16 it is a
/// thousand times slower than the entries that compute in f32.
template <class Pd>
bool is_slow_reference(DType t, const Pd& pd) {
  return t != DType::f32 && std::string_view(pd.impl_info_str()).starts_with("ref");
}
/// declines_primitive for such an op.
template <class F>
MatchResult declines_primitive(DType t, F&& f) {
  std::string used;
  MatchResult why = declines_primitive([&] {
    auto pd = f();
    if (pd && is_slow_reference(t, pd)) used = pd.impl_info_str();
    return static_cast<bool>(pd);
  });
  if (!why.empty() || used.empty()) return why;
  return "oneDNN has only its reference implementation (" + used + ")";
}
/// Checks a primitive in make(), because an epilogue may change the implementation. Throws dnnl::error for a slow
/// reference implementation.
template <class Pd>
Pd not_reference(DType t, Pd pd) {
  if (is_slow_reference(t, pd))
    throw dnnl::error(dnnl_unimplemented, "oneDNN has only its slow reference implementation for this node");
  return pd;
}

// The entries, one table per file.
std::span<const Entry> matmul_entries();
std::span<const Entry> conv_entries();
std::span<const Entry> pool_entries();
std::span<const Entry> recurrent_entries();

}  // namespace tutti::onednn
