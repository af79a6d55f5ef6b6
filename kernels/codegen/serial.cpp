#include "kernels/codegen/serial.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/codegen/joined.h"

namespace tutti::codegen {
namespace {

constexpr int64_t lanes = 16;

/// Where a buffer stands in the list; added if it is new.
size_t place_of(std::vector<uint32_t>& list, uint32_t buffer) {
  auto at = std::ranges::find(list, buffer);
  if (at == list.end()) at = list.insert(at, buffer);
  return static_cast<size_t>(at - list.begin());
}

}  // namespace

bool can_be_serial(const Target& t, const Kernel& k) {
  return t.runs_serially() && k.shared.empty() && k.local[1] * k.local[2] == 1 && !k.subgroups &&
         k.body.find("BARRIER") == std::string::npos;
}

double work_of(const Kernel& k, uint64_t groups) {
  const auto items = static_cast<double>(groups * k.local[0]);
  if (k.work > 0) return items * k.work;
  double work = items * (1 + rounds_of(k));
  for (const auto& [letter, count] : k.repeats)
    for (const auto& [name, value] : k.values)
      if (name == count) work *= std::stod(value);
  return work;
}

Serial serial(const Target& target, std::span<const SerialPart> parts) {
  Target functions = target;
  functions.language = target.language->part;
  Serial c;
  std::string calls;
  for (size_t n = 0; n < parts.size(); ++n) {
    const SerialPart& from = parts[n];
    const KernelSource part = render(functions, *from.kernel);
    c.source.text += with_own_names(part, n);
    c.source.exact = c.source.exact || part.exact;
    c.source.denormals = c.source.denormals || part.denormals;
    std::string arguments = "group, item";
    for (size_t i = 0; i < from.buffers.size(); ++i) {
      const size_t at = place_of(c.buffers, from.buffers[i]);
      c.source.written.resize(c.buffers.size());
      c.source.written[at] = c.source.written[at] || part.written[i];
      arguments += fmt::format(", b{}", at);
    }
    const uint32_t items = from.kernel->local[0];
    // Compilers assume that memory is not read as another type than it was written; mem_fence() is nothing in PoCL.
    calls += fmt::format("  {}for (int group = 0; group < {}; ++group) {{\n",
                         n ? "__asm__ volatile(\"\" ::: \"memory\");\n  " : "", from.groups);
    if (items > 1) calls += fill(target.language->vector_loop, {{"lanes", std::to_string(lanes)}, {"vectors", "1"}});
    calls += fmt::format("  for (int item = 0; item < {}; ++item) {}({});\n  }}\n", items, own_name(part.entry, n),
                         arguments);
  }
  c.source.texels.resize(c.buffers.size());
  std::string parameters;
  for (size_t i = 0; i < c.buffers.size(); ++i) parameters += fmt::format("{}global void* b{}", i ? ", " : "", i);
  c.source.text += fmt::format("__attribute__((reqd_work_group_size(1, 1, 1)))\nkernel void {}({}) {{\n{}}}\n",
                               c.source.entry, parameters, calls);
  return c;
}

}  // namespace tutti::codegen
