#include "backends/cpu/library.h"

namespace tutti::cpu {

KernelList::KernelList(const char* plugin, std::initializer_list<std::span<const Entry>> library) : plugin_(plugin) {
  auto add = [&](std::span<const Entry> part) { all_.insert(all_.end(), part.begin(), part.end()); };
  for (auto part : library) add(part);
  for (auto part : {product_entries(), softmax_entries(), norm_entries(), attention_entries(), reduce_entries(),
                    copy_entries(), index_entries(), quantized_entries(), exchange_entries(), elementwise_entries()})
    add(part);
  exact_ = sdk::exact_entries(all_);
}

Choice KernelList::choose(const NodeView& c) const try {
  if (auto why = sdk::declines_node(c.program, c.node(), true); !why.empty()) return Choice::none(plugin_, why);
  return sdk::choose(c.program.numerics == TUTTI_EXACT ? exact_ : all_, c.node().op, c, plugin_);
} catch (const Error& e) {
  if (e.code == Code::no_memory) throw;
  return Choice::none(plugin_, e.what());  // a missing or invalid attribute
}

KernelPtr try_make(const Library& library, const Entry& entry, const NodeView& c) try {
  return library.make(entry, c);
} catch (const sdk::NodeError& e) {
  if (e.code == Code::no_memory) throw;
  return nullptr;
}

}  // namespace tutti::cpu
