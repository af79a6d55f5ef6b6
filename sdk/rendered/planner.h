// The planner of plan_rendered: turns nodes into launches of rendered kernels and library calls.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
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
        batch_end_(group_ends(p_, TUTTI_BATCH)),
        maker_(makers(p_)) {}

  RenderedPlan run();

 private:
  // ---- launches, nodes: plan.cpp
  PlannedLaunch launch_of(const codegen::Launch& launch, const KernelSource& source,
                          const std::vector<uint32_t>& buffers, const std::string& name);
  /// Throws NodeError(internal) if a library's launches do not use all `operands` inputs and results and the scratch.
  void check_library(const codegen::LaunchList& work, uint32_t node, size_t operands) const;
  /// Adds the launches of one LaunchList with the buffers `in`, `out`, scratch; returns these.
  std::vector<uint32_t> add_work(const RenderedWork& work, const std::string& name, uint32_t node,
                                 const std::vector<uint32_t>& in, const std::vector<uint32_t>& out);
  /// Fills what the work writes and does not read, if TUTTI_POISON is set.
  void poison_results(uint32_t node, const std::vector<uint32_t>& buffers, size_t inputs);
  void copy(const TensorType& type, const std::string& name, uint32_t from, uint32_t to) override;
  uint32_t memory_of(uint32_t v) const { return held_[v].front(); }
  std::vector<uint32_t> memories_of(const std::vector<uint32_t>& values) const;
  /// Memory for a result: its state's or new; for other kernels than passes not memory that the kernel reads.
  uint32_t place_result(uint32_t v, const std::string& name, const std::vector<uint32_t>& in = {});
  void node(uint32_t k) override;
  /// The choice for node k; that of the portable kernel if a library finds it faster.
  const RenderChoice& preferred(uint32_t k);
  /// The work of a chosen entry; if a library declines the epilogue, that of the portable kernel. Valid until the next
  /// call.
  const RenderedWork& made(const RenderChoice& choice, const RenderNodeView& c, size_t operands);
  void structured(uint32_t k, const RenderChoice& choice);
  /// The memory of the input that the node's result may overwrite, or NONE.
  uint32_t overwritten_input(const Node& n, const Capabilities& can);

  // ---- values that the host exchanges: exchange.cpp
  void exchange(uint32_t k);
  /// Room for a value in the memory of exchanged values.
  uint64_t exchange_room(uint64_t bytes);

  // ---- small launches: shared_launches.cpp
  friend class LaunchSharing;
  /// Lets launches that do not depend on each other share one.
  void share_launches();
  PlannedLaunch shared_launch(std::span<const uint32_t> members);
  void drop_unused_kernels();
  /// What the kernel of launch k was rendered from, before launches are joined; null for copies, libraries and fills of
  /// poison.
  const codegen::Launch* made_with(size_t k) const;
  /// The region's bytes in the arena.
  uint64_t arena_bytes(uint32_t memory) const;

  // ---- small launches: serial.cpp
  /// Makes one launch of small ones that follow each other, on devices where that is faster.
  void join_small_launches();
  /// The number of launches from number `first` on, before number `end`, that one launch can run.
  size_t serial_length(size_t first, size_t end) const;
  PlannedLaunch serial(size_t first, size_t length);

  // ---- views: views.cpp
  /// How a value lies in the memory of the value that it is a part of, in another order; in elements.
  struct View {
    Shape strides;
    int64_t offset = 0;
  };
  /// The view that a slice, transpose or reshape makes of the view of its input, if there is one.
  std::optional<View> moved(const Node& n, View view) const;
  /// Whether node k reads the value only where its kernel takes views.
  bool takes_view(uint32_t k, uint32_t v, const View& view);
  /// Whether attention, and elementwise passes that follow node `first` closely, are all that reads the value or views
  /// of it.
  bool read_by_passes(uint32_t v, const View& view, uint32_t first);
  /// Plans node k as a view, if it is one of those and the device has fast strided reads.
  bool view(uint32_t k);
  /// A result's place in the memory of another value.
  struct ResultPlace {
    uint32_t memory;
    View view;
  };
  /// Where results of node k lie if a transpose of each reads it, or one concatenation of the transposes of all: in the
  /// memory of those, so that these nodes are no launches. They are finished.
  std::map<uint32_t, ResultPlace> place_results(uint32_t k, const std::string& name);
  /// Whether a state has this value after the step.
  bool is_state(uint32_t v) const;
  /// The only reader of a value that is no state, or NONE.
  uint32_t only_reader(uint32_t v) const;
  bool place_in_concat(const Node& n, const std::string& name, std::map<uint32_t, ResultPlace>& places);
  bool place_in_transpose(uint32_t v, const std::string& name, std::map<uint32_t, ResultPlace>& places);
  /// Operands of a pass, which may be views.
  std::vector<codegen::Operand> operands(const Fusion& f) const;

  // ---- elementwise passes: passes.cpp
  bool fuses(uint32_t k) const override;
  void elementwise(uint32_t k, const char* entry);
  Fusion fused(std::span<const uint32_t> nodes) const;
  /// Whether it is a cast of a state that may run early: no pass of its shape reads it, and it is read again later (by
  /// the gradient) or small.
  bool casts_state(uint32_t k);
  /// Node k and the nodes of its batch group that fit into one launch, as separate passes; or casts of states.
  std::vector<std::pair<uint32_t, Fusion>> horizontal_group(uint32_t k);
  /// Plans one launch for the horizontal_group of node k, if any, such as an optimizer's many tensors.
  bool batch(uint32_t k, const char* entry);
  /// Plans one launch for a chain and those behind it that are the same but for their tensors, if there are any: such
  /// as an optimizer's updates by gradients that are cast first.
  bool same_chains(const std::vector<uint32_t>& nodes, const Fusion& f, const char* entry);
  /// Whether `count` nodes from b on are of the same kind as those from a on, and can run now.
  bool alike(uint32_t a, uint32_t b, uint32_t count);
  /// Adds small passes to those of a launch: of nodes that are near and can run now. They are finished. A GPU starts a
  /// launch in about the time in which it computes them.
  void add_small(std::vector<std::pair<uint32_t, Fusion>>& list);
  /// Whether the next pass or row program may compute the pass's nodes along with others.
  bool shares_later(const Fusion& f) const;
  /// Whether node k begins a small pass that can run now.
  bool runs_small(uint32_t k);
  /// Plans the launch of several passes; each is given with its first node.
  void launch_batch(const std::vector<std::pair<uint32_t, Fusion>>& list, const std::string& name);
  /// Memory for a result of a fused pass.
  uint32_t pass_output(uint32_t v, const Fusion& f, std::set<uint32_t>& taken, const std::string& name);

  // ---- row programs: rows.cpp
  /// Plans one launch for node k and following nodes that compute along the same rows, if there is a reduction among
  /// them.
  bool rows(uint32_t k);
  friend class RowNodes;
  bool runs_earlier_ = false;  // whether nodes run that a row program is to find done

  // ---- fusion into products: epilogue.cpp
  /// The entry's launches for the view; none if a library declines, which is traced.
  std::optional<codegen::LaunchList> try_make(const RenderEntry& entry, const RenderNodeView& c,
                                              const char* stays) const;
  /// Whether the entry supports the node with this epilogue. A library may decline; then the epilogue is not fused, so
  /// that the product still runs in the library.
  bool takes(const RenderEntry& entry, const RenderNodeView& c, const Epilogue& epilogue) const;
  /// Fuses the nodes after node k into its kernel and finishes them. Returns their number and updates inputs and
  /// results.
  size_t fuse_epilogue(uint32_t k, const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& inputs,
                       std::vector<uint32_t>& results);
  /// Fuses a gelu into a library's product.
  bool fuse_gelu(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& results);
  /// Fuses elementwise nodes into a rendered product whose result they read, unless a later pass could compute them
  /// with other nodes. If something else reads the product's result, it becomes a second result. Returns the number of
  /// nodes.
  size_t fuse_activation(const RenderEntry& entry, RenderNodeView& c, std::vector<uint32_t>& inputs,
                         std::vector<uint32_t>& results);
  /// The nodes that fuse_activation() takes, in order; the last one makes their only result.
  std::vector<uint32_t> activation_of(uint32_t before) const;
  /// Nodes that make what `last` reads, and itself, in order: from `before` and from what exists. None if there is
  /// anything else among them, or if other nodes read what they make.
  std::vector<uint32_t> activation_to(uint32_t last, uint32_t before) const;
  /// Whether an activation may take the node: an elementwise one with one result, of the shape.
  bool activates(uint32_t k, const Shape& shape) const;
  bool sums_operands(const Node& product) const override;
  /// Whether a product computes the sum without a launch of its own.
  bool summed_by_product(const Node& sum) const;
  /// The only reader of v, if it casts it from a 16-bit dtype to f32; or NONE.
  uint32_t cast_of(uint32_t v) const;
  const char* product_with_sum(uint32_t product, uint32_t sum, OperandSum which) override;

  const Traits& traits_;
  RenderCache& cache_;
  RenderChoice portable_;      // what preferred() returned last where a library declined
  RenderedWork library_work_;  // what made() returned last for a library's entry
  uint64_t tuning_bytes_;
  std::map<uint32_t, View> views_;   // of values that are views
  std::vector<uint32_t> batch_end_;  // per node: the end of its batch group
  std::vector<uint32_t> maker_;      // per value: the node that makes it, or NONE
  std::map<std::string, uint32_t> kernels_;
  std::map<std::vector<uint32_t>, uint32_t> numbers_;  // numbers of launches to the region that holds them
  struct Made {
    codegen::Launch launch;
    uint32_t step;
  };
  std::map<size_t, Made> made_;  // by launch
  /// Values that travel, by the result of the node that began it: their place in the memory of exchanged values.
  struct Travelling {
    uint64_t at, bytes;
  };
  std::map<uint32_t, Travelling> travelling_;
  RenderedPlan plan_;
};

}  // namespace tutti::sdk
