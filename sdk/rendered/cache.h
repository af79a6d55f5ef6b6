// What a session of a rendered device plans once for all nodes alike.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sdk/rendered/kernels.h"

namespace tutti::sdk {

/// Launches with the texts of their kernels.
struct RenderedWork {
  codegen::LaunchList list;
  std::vector<KernelSource> sources;  ///< per launch; without a text where it runs none of our kernels
};

/// Renders the kernels of a list.
RenderedWork rendered(const Traits& traits, codegen::LaunchList list);

/// Choices, launches and kernel texts of a session by what they depend on. Traits must outlive it.
class RenderCache {
 public:
  explicit RenderCache(const Traits& traits) : traits_(traits), choices_(choose_rendered) {}

  /// The choice for a node by itself. The reference stays valid.
  const RenderChoice& choice(const Program& program, uint32_t node) { return choices_.of({program, node, traits_}); }
  /// What a portable entry makes of the view. Throws Error(declined). The reference is valid until the next call.
  const RenderedWork& work(const RenderEntry& entry, const RenderNodeView& view);
  /// The kernel of a pass; likewise.
  const RenderedWork& pass(const Program& program, const Fusion& fusion);

 private:
  /// The work of that key, made by `make` where it is new.
  template <class F>
  const RenderedWork& kept(std::string key, F&& make);

  const Traits& traits_;
  ChoiceCache<RenderNodeView, codegen::LaunchList> choices_;
  std::map<std::string, RenderedWork> work_;
};

}  // namespace tutti::sdk
