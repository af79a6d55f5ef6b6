// Plans of whole training steps for a GPU that is described, perhaps with a library.
#pragma once
#include "graph/lower/compile.h"
#include "sdk/library.h"
#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"

namespace tutti::cuda {

/// An H100 as its driver describes it, perhaps with a library.
inline sdk::Traits hopper(const sdk::Library* library = nullptr) {
  sdk::Traits t;
  t.library = library;
  t.language = &sdk::Language::cuda_c();
  t.half_storage = true;
  t.max_local = 1024;
  t.subgroup = 32;
  t.local_bytes = 49152;
  t.compute_units = 132;
  t.max_arguments = 256;
  return t;
}

/// The plan of a graph whose nodes the rendered kernels and the library take.
inline sdk::RenderedPlan plan(const Graph& g, const sdk::Library* library = nullptr) {
  sdk::Traits traits = hopper(library);
  Legalizer legalizer(
      [&](const Graph& asked) {
        Lowered lowered(asked);
        sdk::Program program = sdk::Program::parse(lowered.program());
        std::vector<Verdict> verdicts;
        for (uint32_t k = 0; k < program.nodes.size(); ++k) {
          sdk::RenderChoice choice = sdk::choose_rendered({program, k, traits});
          verdicts.push_back({choice.entry != nullptr, choice.entry ? "" : choice.reasons()});
        }
        return verdicts;
      },
      "cuda");
  Lowered lowered = compile_for_device(g, legalizer);
  sdk::RenderCache cache(traits);
  return plan_rendered(sdk::Program::parse(lowered.program()), traits, cache, nullptr);
}

}  // namespace tutti::cuda
