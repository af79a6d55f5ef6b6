#include "cli/roofline_plan.h"

#include <fmt/format.h>

#include <span>

#include "core/base/text.h"

namespace tutti::cli {
namespace {

constexpr size_t shown = 10;

template <class T>
std::span<const T> first(const std::vector<T>& all) {
  return std::span(all).first(std::min(all.size(), shown));
}

std::string bytes(double x) { return bytes_text(static_cast<uint64_t>(x)); }

/// At most `room` characters.
std::string cut(const std::string& text, size_t room) {
  return text.size() <= room ? text : text.substr(0, room - 3) + "...";
}

}  // namespace

void print_prediction(const bench::Prediction& p) {
  fmt::print("  predicted for {}, not measured: {:.4g} ms per step, of which {:.4g} ms is launch overhead\n",
             p.card.name, 1000 * p.seconds, 1000 * p.launch_seconds);
  fmt::print(
      "    {} launches, {} memory traffic, {:.4g} GFLOP; at {:.0f} % of peak bandwidth and {:.0f} % of peak matmul "
      "rate\n",
      p.launches, bytes(p.cost.bytes), 1e-9 * p.cost.flops, 100 * bench::Prediction::memory_share,
      100 * bench::Prediction::product_share);
  fmt::print("    {}\n  costliest nodes\n", p.card.doc);
  for (const bench::PredictedKernel& k : first(p.kernels))
    fmt::print("    {:>9.4g} us {:>4} launches {:>10} {:>9.4g} GFLOP  {} {}\n", 1e6 * k.seconds, k.launches,
               bytes(k.cost.bytes), 1e-9 * k.cost.flops, k.op, k.label);
  if (p.fusable.empty()) return;
  fmt::print("  adjacent kernels without products, and what one kernel in their place would save\n");
  for (const bench::FusableRun& f : first(p.fusable))
    fmt::print("    {:>9.4g} us {:>4} launches {:>10} of {:>10}  {}\n", 1e6 * f.saved_seconds, f.launches,
               bytes(f.inner_bytes), bytes(f.bytes), cut(f.ops, 60));
}

nlohmann::ordered_json prediction_document(const bench::Prediction& p) {
  nlohmann::ordered_json out{{"card", p.card.name},
                             {"rates", p.card.doc},
                             {"step_ms", 1000 * p.seconds},
                             {"launch_ms", 1000 * p.launch_seconds},
                             {"memory_share", bench::Prediction::memory_share},
                             {"product_share", bench::Prediction::product_share},
                             {"launches", p.launches},
                             {"bytes", p.cost.bytes},
                             {"flops", p.cost.flops}};
  out["nodes"] = nlohmann::json::array();
  for (const bench::PredictedKernel& k : p.kernels)
    out["nodes"].push_back({{"op", k.op},
                            {"label", k.label},
                            {"us", 1e6 * k.seconds},
                            {"launches", k.launches},
                            {"bytes", k.cost.bytes},
                            {"flops", k.cost.flops}});
  out["fusable"] = nlohmann::json::array();
  for (const bench::FusableRun& f : p.fusable)
    out["fusable"].push_back({{"ops", f.ops},
                              {"launches", f.launches},
                              {"bytes", f.bytes},
                              {"inner_bytes", f.inner_bytes},
                              {"saved_us", 1e6 * f.saved_seconds}});
  return out;
}

}  // namespace tutti::cli
