// Values that processes exchange during a run.
#include <fmt/format.h>

#include <cstring>

#include "backends/cpu/kernel.h"
#include "kernels/cpu/denormals.h"

namespace tutti::cpu {
namespace {

MatchResult declines_exchange(const NodeView& c) {
  const Attrs& a = c.node().attrs;
  a.i("number");
  auto dtype = parse_dtype(a.text("dtype"));
  if (!dtype) return "dtype " + a.text("dtype");
  const TensorType type{*dtype, a.ints("shape")};
  if (!c.node().inputs.empty()) {
    if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
    if (c.in(0) != type) return fmt::format("the input is {}, expected {}", to_string(c.in(0)), to_string(type));
  }
  return expect_result(c, 0, type);
}

KernelPtr make_exchange(const NodeView& c) { return std::make_unique<ExchangeKernel>(c); }

const Entry entries[] = {{"host exchange", "tutti.exchange", declines_exchange, make_exchange, {.exact = true}}};

}  // namespace

ExchangeKernel::ExchangeKernel(const NodeView& c)
    : number_(static_cast<uint64_t>(c.node().attrs.i("number"))), bytes_(num_bytes(c.out(0))) {
  in.resize(c.node().inputs.size());
  out.resize(1);
  overwrites = !in.empty();
}

void ExchangeKernel::bind(std::span<void* const> in, std::span<void* const> out, std::byte*) {
  in_ = in.empty() ? nullptr : in[0];
  out_ = out[0];
}

void ExchangeKernel::run() {
  if (!exchange)
    throw invalid("the program exchanges values with other processes, but is not connected to any",
                  "call connect of the extension tutti.exchange first");
  if (in_ && in_ != out_) std::memcpy(out_, in_, bytes_);
  kernels::KeepDenormals denormals;  // the host's arithmetic
  exchange(number_, out_, bytes_);
}

std::span<const Entry> exchange_entries() { return entries; }

}  // namespace tutti::cpu
