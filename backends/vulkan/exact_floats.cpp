#include "backends/vulkan/exact_floats.h"

#include <glslang/SPIRV/spirv.hpp>

#include <algorithm>

namespace tutti::vulkan {
namespace {

constexpr uint32_t instruction(uint32_t op, uint32_t words) { return op | words << 16; }

/// Whether a driver may contract or reorder the instruction.
bool may_contract(uint32_t op) {
  static constexpr uint32_t list[] = {
      spv::OpFNegate,           spv::OpFAdd, spv::OpFSub, spv::OpFMul, spv::OpFDiv, spv::OpFRem,
      spv::OpVectorTimesScalar, spv::OpDot};
  return std::ranges::find(list, op) != std::end(list);
}

}  // namespace

std::vector<uint32_t> with_exact_floats(const std::vector<uint32_t>& words, const FloatControls& controls) {
  constexpr size_t header = 5;
  std::vector<uint32_t> capabilities, modes, marks;
  size_t modes_at = 0, types_at = 0;  // after the entry point; before the first type
  uint32_t entry = 0;
  std::vector<bool> marked(words[3]);
  for (size_t at = header; at < words.size(); at += words[at] >> 16) {
    uint32_t op = words[at] & 0xffff;
    if (op == spv::OpEntryPoint) entry = words[at + 2], modes_at = at + (words[at] >> 16);
    if (op == spv::OpDecorate && words[at + 2] == spv::DecorationNoContraction) marked[words[at + 1]] = true;
    if (op >= spv::OpTypeVoid && op <= spv::OpTypeForwardPointer && types_at == 0) types_at = at;
    if (may_contract(op) && !marked[words[at + 2]])
      marks.insert(marks.end(), {instruction(spv::OpDecorate, 3), words[at + 2], spv::DecorationNoContraction});
  }
  auto add = [&](bool offered, uint32_t capability, uint32_t mode) {
    if (!offered) return;
    capabilities.insert(capabilities.end(), {instruction(spv::OpCapability, 2), capability});
    modes.insert(modes.end(), {instruction(spv::OpExecutionMode, 4), entry, mode, 32});
  };
  add(controls.denormals, spv::CapabilityDenormPreserve, spv::ExecutionModeDenormPreserve);
  add(controls.signed_zero, spv::CapabilitySignedZeroInfNanPreserve, spv::ExecutionModeSignedZeroInfNanPreserve);
  add(controls.nearest, spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE);
  auto from = words.begin();
  std::vector<uint32_t> all(from, from + header);
  auto append = [&](size_t first, size_t last, const std::vector<uint32_t>& then) {
    all.insert(all.end(), from + static_cast<std::ptrdiff_t>(first), from + static_cast<std::ptrdiff_t>(last));
    all.insert(all.end(), then.begin(), then.end());
  };
  append(header, header, capabilities);
  append(header, modes_at, modes);
  append(modes_at, types_at, marks);
  append(types_at, words.size(), {});
  return all;
}

}  // namespace tutti::vulkan
