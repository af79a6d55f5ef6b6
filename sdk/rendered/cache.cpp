#include "sdk/rendered/cache.h"

#include <utility>

#include "kernels/codegen/kernel.h"

namespace tutti::sdk {
namespace {

constexpr size_t most_kept = 4096;  // cleared beyond this size, for sessions that keep compiling new shapes

}  // namespace

RenderedWork rendered(const Traits& traits, codegen::LaunchList list) {
  RenderedWork work{std::move(list), {}};
  for (const codegen::Launch& l : work.list.launches)
    work.sources.push_back(l.kernel ? codegen::render(traits, *l.kernel) : KernelSource{});
  return work;
}

template <class F>
const RenderedWork& RenderCache::kept(std::string key, F&& make) {
  auto at = work_.find(key);
  if (at != work_.end()) return at->second;
  RenderedWork work = rendered(traits_, make());
  if (work_.size() >= most_kept) work_.clear();
  return work_.emplace(std::move(key), std::move(work)).first->second;
}

const RenderedWork& RenderCache::work(const RenderEntry& entry, const RenderNodeView& view) {
  const Epilogue& e = view.epilogue;
  KeyBytes key = signature(view.program, view.node());
  key.add('w')
      .add(&entry)
      .add(e.bias)
      .add(e.relu)
      .add(e.gelu)
      .add(e.sum)
      .add(e.sum_f32)
      .add_all(e.activation)
      .add(e.keep)
      .add(view.in_place);
  for (const codegen::Operand& x : e.others) key.add('o').add(x.dtype).add_all(x.strides);
  for (const auto& [input, at] : view.views) key.add(input).add_all(at.strides).add(at.offset);
  for (const auto& [result, at] : view.places) key.add('t').add(result).add_all(at.strides).add(at.offset);
  return kept(key.take(), [&] { return entry.make(view); });
}

const RenderedWork& RenderCache::pass(const Program& program, const Fusion& fusion) {
  KeyBytes key;
  key.add('p').add_all(fusion.code).add_all(fusion.dims).add(fusion.exact);
  for (uint32_t v : fusion.inputs) key.add(program.type(v));
  for (uint32_t v : fusion.outputs) key.add(program.type(v));
  return kept(key.take(), [&] { return render(program, traits_, fusion); });
}

const RenderedWork& RenderCache::rows(const codegen::RowProgram& program) {
  KeyBytes key;
  key.add('r')
      .add_all(program.code)
      .add_all(program.outer)
      .add(program.length)
      .add(program.segment)
      .add_all(program.out);
  for (const codegen::Operand& x : program.in) key.add(x.dtype).add_all(x.strides).add(x.offset);
  return kept(key.take(), [&] { return codegen::row_program(traits_, program); });
}

}  // namespace tutti::sdk
