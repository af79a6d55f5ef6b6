#include <fmt/format.h>
#include <dnnl.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "backends/onednn/onednn.h"
#include "backends/onednn/session.h"
#include "core/base/cpus.h"
#include "core/base/text.h"
#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/team.h"
#include "sdk/shortage.h"

namespace tutti::onednn {
namespace {

/// The processor's name from /proc/cpuinfo.
std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    size_t at = line.find(':');
    if (at != std::string::npos && at + 2 < line.size()) return line.substr(at + 2);
  }
  return "CPU";
}

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

class OnednnPlugin : public sdk::Plugin {
 public:
  const char* name() const override { return "onednn"; }
  const char* version() const override { return TUTTI_VERSION; }
  bool profiles() const override { return true; }
  bool reports_ready() const override { return true; }
  bool exchanges() const override { return true; }

  std::vector<sdk::Device> devices() override {
    const dnnl_version_t* v = dnnl_version();
    sdk::Device d;
    d.name = cpu_name();
    d.driver = fmt::format("oneDNN {}.{}.{} ({})", v->major, v->minor, v->patch, isa_name());
    d.kind = TUTTI_CPU;
    sdk::take_host_memory(d);
    return {d};
  }

  std::unique_ptr<sdk::Session> open(uint32_t device, const sdk::Options& options) override {
    if (device != 0) throw invalid(fmt::format("onednn: no device {}", device), "its one device is 0");
    int threads = default_threads();
    for (const auto& [key, value] : options) {
      if (key != "threads")
        throw invalid(fmt::format("onednn: unknown option '{}'", key), "the valid option is: threads");
      threads = parse_number<int>(value).value_or(0);
      if (threads < 1 || threads > most_threads)
        throw invalid(fmt::format("onednn: option threads is '{}'", value),
                      fmt::format("use an integer from 1 to {}", most_threads));
    }
    return make_session(std::min(threads, kernels::thread_limit()), host_);
  }
};

}  // namespace

sdk::Plugin* make_plugin() { return new OnednnPlugin; }

}  // namespace tutti::onednn
