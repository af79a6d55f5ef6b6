#include "backends/onednn/primitive.h"

#include <fmt/format.h>

#include "sdk/shortage.h"

namespace tutti::onednn {

const dnnl::engine& engine() {
  static const auto& one = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return one;
}

const dnnl::stream& stream() {
  static const auto& one = *new dnnl::stream(engine());
  return one;
}

dnnl::primitive_attr attributes() {
  sdk::expect_room(uint64_t{16} << 20);
  dnnl::primitive_attr a;
  a.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return a;
}

PrimitiveKernel::PrimitiveKernel(const dnnl::primitive_desc_base& pd, std::vector<Argument> arguments, int threads,
                                 int session_threads)
    : primitive_(pd.get()),
      arguments_(std::move(arguments)),
      scratchpad_(pd.scratchpad_desc()),
      threads_(threads),
      session_threads_(session_threads) {
  scratch = scratchpad_.get_size();
  implementation = pd.impl_info_str();
}

void PrimitiveKernel::bind(std::span<void* const> in, std::span<void* const> out, std::byte* scratch) {
  for (const Argument& a : arguments_) memories_.emplace_back(a.desc, engine(), a.result ? out[a.slot] : in[a.slot]);
  for (size_t k = 0; k < arguments_.size(); ++k) bound_.push_back({arguments_[k].id, memories_[k].get()});
  if (scratchpad_.get_size() == 0) return;
  memories_.emplace_back(scratchpad_, engine(), scratch);
  bound_.push_back({DNNL_ARG_SCRATCHPAD, memories_.back().get()});
}

void PrimitiveKernel::run() {
  if (threads_ != session_threads_) OpenMp::get().set_threads(threads_);
  auto status =
      dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(bound_.size()), bound_.data());
  if (threads_ != session_threads_) OpenMp::get().set_threads(session_threads_);
  if (status != dnnl_success)
    throw Error(Code::internal, fmt::format("oneDNN failed with status {}", static_cast<int>(status)));
}

}  // namespace tutti::onednn
