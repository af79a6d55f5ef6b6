#include <fmt/format.h>
#include <dnnl.hpp>

#include "backends/cpu/device.h"
#include "backends/onednn/onednn.h"
#include "backends/onednn/openmp.h"
#include "backends/onednn/primitive.h"

namespace tutti::onednn {
namespace {

const char* isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41: return "sse4.1";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2 vnni";
    case dnnl::cpu_isa::avx2_vnni_2: return "avx2 vnni 2";
    case dnnl::cpu_isa::avx512_core: return "avx512";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512 vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512 bf16";
    case dnnl::cpu_isa::avx512_core_fp16: return "avx512 fp16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512 amx";
    case dnnl::cpu_isa::avx512_core_amx_fp16: return "avx512 amx fp16";
    default: return "generic";
  }
}

std::string driver() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{} ({})", v->major, v->minor, v->patch, isa_name());
}

/// oneDNN's primitives, before the kernels of kernels/.
Choice choose(const NodeView& c) {
  static const cpu::KernelList list("onednn", {matmul_entries(), conv_entries(), pool_entries(), recurrent_entries()});
  return list.choose(c);
}

KernelPtr make(const Entry& entry, const NodeView& c) try { return entry.make(c); } catch (const dnnl::error& e) {
  throw sdk::NodeError(c.number, e.status == dnnl_out_of_memory ? Code::no_memory : Code::compile,
                       fmt::format("{}: oneDNN: {}", entry.name, e.what()), "use a smaller batch or model");
}

}  // namespace

const cpu::Library& library() {
  static constexpr cpu::Library one = {
      .name = "onednn",
      .driver = driver,
      .choose = choose,
      .make = make,
      .enter = [](int threads) { OpenMp::get().set_threads(threads); },
      .leave = [] {},
      .foreign_threads = [] { return OpenMp::get().why_not_ours(); },
  };
  return one;
}

sdk::Plugin* make_plugin() { return cpu::make_plugin(library()); }

}  // namespace tutti::onednn
