// Plans of hand-made programs.
#pragma once
#include "sdk/rendered/cache.h"
#include "sdk/rendered/plan.h"
#include "tests/sdk/raw_program.h"

namespace tutti::test {

/// The plan for a device with these traits; by default a GPU.
inline sdk::RenderedPlan plan(const RawProgram& raw, const sdk::Traits& traits = {}) {
  sdk::RenderCache cache(traits);
  return sdk::plan_rendered(sdk::Program::parse(raw.raw()), traits, cache, nullptr);
}

}  // namespace tutti::test
