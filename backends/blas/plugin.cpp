#include "backends/blas/blas.h"
#include "backends/blas/gemm.h"
#include "backends/cpu/device.h"

namespace tutti::blas {
namespace {

Choice choose(const NodeView& c) {
  static const cpu::KernelList list("cpu", {matmul_entries(), conv_entries(), pool_entries()});
  return list.choose(c);
}

}  // namespace

const cpu::Library& library() {
  static constexpr cpu::Library one = {
      .name = "cpu",
      .driver = description,
      .choose = choose,
      .make = [](const Entry& entry, const NodeView& c) { return entry.make(c); },
      .enter = [](int) { hold_threads(); },
      .leave = release_threads,
      .foreign_threads = [] { return std::string(); },
  };
  return one;
}

sdk::Plugin* make_plugin() { return cpu::make_plugin(library()); }

}  // namespace tutti::blas
