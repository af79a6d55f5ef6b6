#include "bench/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/abi/growth.h"
#include "core/base/option_text.h"
#include "train/run/profile.h"

namespace tutti::bench {
namespace {

class Predictor {
 public:
  Predictor(const TuttiProgram& program, const Card& card, Precision run) : program_(program), card_(card), run_(run) {}

  Prediction operator()(std::span<const KernelTime> launches) {
    std::vector<KernelTime> all(launches.begin(), launches.end());
    out_.card = card_;
    work_ = work_of(program_, all);
    out_.launches = static_cast<int64_t>(all.size());
    out_.launch_seconds = card_.launch_seconds * static_cast<double>(all.size());
    for (const KernelTime& launch : all) count(launch);
    for (PredictedKernel& k : out_.kernels) finish(k);
    find_fusable();
    std::ranges::stable_sort(out_.kernels, std::ranges::greater(), &PredictedKernel::seconds);
    return std::move(out_);
  }

 private:
  void count(const KernelTime& launch) {
    auto [at, fresh] = index_.try_emplace(launch.node, out_.kernels.size());
    if (fresh) {
      PredictedKernel k{.node = launch.node, .op = "copy"};
      if (launch.node != TUTTI_NONE) {
        auto node = element_of<TuttiNode>(program_.nodes, launch.node);
        k.op = node.op;
        k.label = node.label;
        k.cost = work_.at(launch.node).cost;
        bool tensor_cores = launch.kernel.starts_with("tensor core attention");
        if (tensor_cores || launch.kernel.starts_with("portable attention")) attention_in_tiles(k, tensor_cores);
      }
      out_.kernels.push_back(std::move(k));
    }
    ++out_.kernels[at->second].launches;
  }

  /// It multiplies in f32 where it does not run on tensor cores. Its gradient has two kernels that both compute the
  /// scores and their gradients: 7 products for 5.
  static void attention_in_tiles(PredictedKernel& k, bool tensor_cores) {
    k.tensor_cores = tensor_cores;
    if (k.op == "attention_grad") k.cost.flops *= 7.0 / 5;
  }

  void finish(PredictedKernel& k) {
    double products = k.cost.flops > 0 ? k.cost.flops / (Prediction::product_share * rate(k)) : 0;
    k.seconds = std::max(products, memory_seconds(k.cost.bytes)) + card_.launch_seconds * double(k.launches);
    out_.seconds += k.seconds;
    out_.cost.bytes += k.cost.bytes;
    out_.cost.flops += k.cost.flops;
  }

  double memory_seconds(double bytes) const { return bytes / (Prediction::memory_share * card_.bytes_per_second); }

  double rate(const PredictedKernel& k) const {
    Precision p = precision_of(program_, k.node, run_);
    std::string precision = name(k.tensor_cores ? p : Precision::f32);
    auto it = card_.flops.find(precision);
    if (it == card_.flops.end())
      throw invalid_option("roofline", card_.name, fmt::format("the card has no rate of products in {}", precision),
                           "use another precision");
    return it->second;
  }

  /// Runs of at least two kernels without products, in the order of the launches.
  void find_fusable() {
    for (size_t first = 0; first < out_.kernels.size();) {
      size_t last = first;
      while (last < out_.kernels.size() && out_.kernels[last].cost.flops == 0 && out_.kernels[last].node != TUTTI_NONE)
        ++last;
      if (last - first > 1) out_.fusable.push_back(fused(first, last));
      first = std::max(last, first + 1);
    }
    std::ranges::stable_sort(out_.fusable, std::ranges::greater(), &FusableRun::saved_seconds);
  }

  FusableRun fused(size_t first, size_t last) const {
    FusableRun run;
    std::vector<uint32_t> nodes;
    for (size_t k = first; k < last; ++k) {
      const PredictedKernel& kernel = out_.kernels[k];
      run.launches += kernel.launches;
      run.bytes += kernel.cost.bytes;
      run.ops += (run.ops.empty() ? "" : " ") + kernel.op;
      const std::vector<uint32_t>& of = work_.at(kernel.node).nodes;
      nodes.insert(nodes.end(), of.begin(), of.end());
    }
    std::ranges::sort(nodes);
    run.inner_bytes = std::max(0.0, run.bytes - estimate_cost(program_, nodes).bytes);
    run.saved_seconds = memory_seconds(run.inner_bytes) + card_.launch_seconds * static_cast<double>(run.launches - 1);
    return run;
  }

  const TuttiProgram& program_;
  const Card& card_;
  Precision run_;
  std::map<uint32_t, ProfiledWork> work_;
  std::map<uint32_t, size_t> index_;  // by node
  Prediction out_;
};

}  // namespace

Precision precision_of(const TuttiProgram& program, uint32_t node, Precision run) {
  auto n = element_of<TuttiNode>(program.nodes, node);
  if (n.input_count == 0) return run;
  switch (static_cast<DType>(element_of<TuttiValue>(program.values, n.inputs[0]).dtype)) {
    case DType::bf16: return Precision::bf16;
    case DType::f16: return Precision::f16;
    default: return run == Precision::tf32 ? run : Precision::f32;
  }
}

Prediction predict(const TuttiProgram& program, std::span<const KernelTime> launches, const Card& card, Precision run) {
  return Predictor(program, card, run)(launches);
}

}  // namespace tutti::bench
