// The planner behind plan_rendered: how nodes become launches of rendered kernels and of the device's library.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sdk/plan/liveness.h"
#include "sdk/plan/schedule.h"
#include "sdk/rendered/cache.h"
#include "sdk/rendered/kernels.h"
#include "sdk/rendered/plan.h"

namespace tutti::sdk {

/// Plans one program; see plan_rendered. Program, traits and trace must outlive it.
class Planner : Schedule {
 public:
  Planner(const Program& program, const Traits& traits, RenderCache& cache, const Trace& trace, uint64_t tuning_bytes)
      : Schedule(program, trace),
        traits_(traits),
        cache_(cache),
        tuning_bytes_(tuning_bytes),
        batch_end_(group_ends(p_, TUTTI_BATCH)) {}

  RenderedPlan run();

 private:
  // ---- launches, nodes: plan.cpp
  PlannedLaunch launch_of(const codegen::Launch& launch, const KernelSource& source,
                          const std::vector<uint32_t>& buffers, const std::string& name);
  /// Throws NodeError(internal) where what a library made does not use each of `operands` inputs and results, and its
  /// scratch.
  void check_library(const codegen::LaunchList& work, uint32_t node, size_t operands) const;
  /// Adds the launches of one LaunchList; its buffers are `in`, then `out`, then scratch.
  void add_work(const RenderedWork& work, const std::string& name, uint32_t node, const std::vector<uint32_t>& in,
                const std::vector<uint32_t>& out);
  void copy(const TensorType& type, const std::string& name, uint32_t from, uint32_t to) override;
  uint32_t memory_of(uint32_t v) const { return held_[v].front(); }
  std::vector<uint32_t> memories_of(const std::vector<uint32_t>& values) const;
  /// Memory for a result of a pass (its home, or new) or of another kernel (not one that it reads).
  uint32_t place_result(uint32_t v, const std::string& name, const std::vector<uint32_t>& in = {});
  void node(uint32_t k) override;
  /// The work of a chosen entry; where a library does not take the epilogue along, the portable kernel does.
  RenderedWork made(const RenderChoice& choice, const RenderNodeView& c);
  void structured(uint32_t k, const RenderChoice& choice);
  /// The memory of the node's input that its result may be written over; NONE: there is none.
  uint32_t overwritten_input(const Node& n, const Capabilities& can);

  // ---- elementwise passes: passes.cpp
  bool fuses(uint32_t k) override;
  void elementwise(uint32_t k, const char* entry);
  Fusion fused(std::span<const uint32_t> nodes) const;
  /// Node k and those of its batch group that one launch can hold, as passes of their own.
  std::vector<std::pair<uint32_t, Fusion>> horizontal_group(uint32_t k);
  /// One launch for the horizontal_group of node k, where it has some: an optimizer's many tensors.
  bool batch(uint32_t k, const char* entry);
  /// Where a fused pass writes a result.
  uint32_t pass_output(uint32_t v, const Fusion& f, std::set<uint32_t>& taken, const std::string& name);

  // ---- products take what stands behind and beside them along: epilogue.cpp
  /// What the entry makes of the case; nothing where a library declines, which is traced.
  std::optional<codegen::LaunchList> try_make(const RenderEntry& entry, const RenderNodeView& c,
                                              const char* stays) const;
  /// Whether the entry makes the node with this epilogue. A device's library may decline: not every epilogue is worth
  /// the loss of the product itself.
  bool takes(const RenderEntry& entry, const RenderNodeView& c, const Epilogue& epilogue) const;
  /// Finishes the nodes behind node k that its kernel can take along: their number, and the results and inputs with
  /// them.
  size_t fuse_epilogue(uint32_t k, const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& inputs,
                       std::vector<uint32_t>& results);
  /// The gelu behind a library's product.
  bool fuse_gelu(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& results);
  bool sums_operands(const Node& product) const override { return traits_.library && product.op == "matmul"; }
  const char* product_with_sum(uint32_t product, uint32_t sum, OperandSum which) override;

  const Traits& traits_;
  RenderCache& cache_;
  uint64_t tuning_bytes_;
  std::vector<uint32_t> batch_end_;  // per node: the end of its batch group
  std::map<std::string, uint32_t> kernels_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // of launches: the memory that holds them
  RenderedPlan plan_;
};

}  // namespace tutti::sdk
