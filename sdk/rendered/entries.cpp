#include "sdk/rendered/entries.h"

#include <algorithm>

namespace tutti::sdk {

void expect(const RenderNodeView& c, size_t inputs, std::initializer_list<std::string_view> attrs) {
  const Node& n = c.node();
  if (n.inputs.size() != inputs) throw decline(fmt::format("{} inputs, expected {}", n.inputs.size(), inputs));
  for (const auto& [key, value] : n.attrs)
    if (std::find(attrs.begin(), attrs.end(), key) == attrs.end())
      throw decline(fmt::format("unknown attribute '{}'", key));
}

void expect_result(const RenderNodeView& c, const TensorType& want) {
  if (c.node().results.size() != 1) throw decline(fmt::format("{} results, expected 1", c.node().results.size()));
  if (c.wants(0) && c.out(0) != want)
    throw decline(fmt::format("the result is {}, expected {}", to_string(c.out(0)), to_string(want)));
}

MatchResult declines_launches(const Traits& traits, const codegen::LaunchList& work) {
  for (const codegen::Launch& d : work.launches)
    if (d.buffers.size() > traits.max_arguments)
      return fmt::format("{} buffers; kernels of this device support at most {}", d.buffers.size(),
                         traits.max_arguments);
  for (uint64_t bytes : work.scratch_bytes)
    if (bytes > traits.max_buffer_bytes)
      return fmt::format("{} bytes of scratch memory; kernels of this device can address at most {}", bytes,
                         traits.max_buffer_bytes);
  return "";
}

}  // namespace tutti::sdk
