#include "sdk/rendered_entries.h"

#include <algorithm>

namespace tutti::sdk {
namespace {

constexpr int64_t limit = int64_t{1} << 30;

int64_t entry_of(const Attrs& a, const char* name, size_t axis, int64_t least) {
  const Ints& list = a.ints(name);
  if (list.size() != 2 || list[axis] < least || list[axis] > limit)
    throw decline(fmt::format("{} {}: two numbers of at least {} are needed", name, to_string(list), least));
  return list[axis];
}

}  // namespace

void expect(const RenderCase& c, size_t inputs, std::initializer_list<std::string_view> attrs) {
  const Node& n = c.node();
  if (n.inputs.size() != inputs) throw decline(fmt::format("{} inputs, {} are needed", n.inputs.size(), inputs));
  for (const auto& [key, value] : n.attrs)
    if (std::find(attrs.begin(), attrs.end(), key) == attrs.end())
      throw decline(fmt::format("unknown attribute '{}'", key));
}

void expect_result(const RenderCase& c, const TensorType& want) {
  if (c.node().results.size() != 1) throw decline(fmt::format("{} results, 1 is expected", c.node().results.size()));
  if (c.wants(0) && c.out(0) != want)
    throw decline(fmt::format("the result is {}, {} is expected", to_string(c.out(0)), to_string(want)));
}

dialect::WindowAxis window_axis(const Attrs& a, size_t axis, int64_t size, int64_t kernel) {
  dialect::WindowAxis w{size,
                        kernel,
                        entry_of(a, "stride", axis, 1),
                        entry_of(a, "padding", axis, 0),
                        a.has("dilation") ? entry_of(a, "dilation", axis, 1) : 1,
                        0};
  int64_t room = size + 2 * w.padding - w.dilation * (w.kernel - 1) - 1;
  if (size > limit || kernel < 1 || kernel > limit || room < 0)
    throw decline(fmt::format("a window of {} taps with dilation {} does not fit into {} with padding {}", w.kernel,
                              w.dilation, size, w.padding));
  w.count = room / w.stride + 1;
  return w;
}

dialect::WindowAxis window_axis(const Attrs& a, size_t axis, int64_t size) {
  return window_axis(a, axis, size, entry_of(a, "kernel", axis, 1));
}

Decline declines_launches(const Traits& traits, const dialect::LaunchList& work) {
  for (const dialect::Launch& d : work.launches)
    if (d.buffers.size() > traits.max_arguments)
      return fmt::format("{} buffers; a kernel of this device takes {}", d.buffers.size(), traits.max_arguments);
  for (uint64_t bytes : work.scratch_bytes)
    if (bytes > traits.max_buffer_bytes)
      return fmt::format("{} bytes of scratch memory; a kernel of this device reaches at most {}", bytes,
                         traits.max_buffer_bytes);
  return "";
}

}  // namespace tutti::sdk
