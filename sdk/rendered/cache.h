// Caches planning results of a rendered session for identical nodes.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "sdk/rendered/kernels.h"

namespace tutti::sdk {

/// Launches with their kernel sources.
struct RenderedWork {
  codegen::LaunchList list;
  std::vector<KernelSource> sources;  ///< per launch; without text if it does not run a rendered kernel
};

/// Renders the kernels of a list.
RenderedWork rendered(const Traits& traits, codegen::LaunchList list);

/// Cache of choices, launches and kernel sources of a session. Traits must outlive it.
class RenderCache {
 public:
  explicit RenderCache(const Traits& traits) : traits_(traits), choices_(choose_rendered) {}

  /// The choice for a node without epilogue. The reference stays valid.
  const RenderChoice& choice(const Program& program, uint32_t node) { return choices_.of({program, node, traits_}); }
  /// The work of a portable entry for the view. Throws Error(declined). The reference is valid until the next call.
  const RenderedWork& work(const RenderEntry& entry, const RenderNodeView& view);
  /// The same for an elementwise pass.
  const RenderedWork& pass(const Program& program, const Fusion& fusion);
  /// The same for a row program.
  const RenderedWork& rows(const codegen::RowProgram& program);

 private:
  /// The cached work for the key; calls `make` if it is new.
  template <class F>
  const RenderedWork& kept(std::string key, F&& make);

  const Traits& traits_;
  ChoiceCache<RenderNodeView, codegen::LaunchList> choices_;
  std::map<std::string, RenderedWork> work_;
};

}  // namespace tutti::sdk
