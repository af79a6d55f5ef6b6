#include "tests/softcuda/kernel_run.h"

#include <cstring>
#include <memory>
#include <span>

#include "backends/cuda/build.h"
#include "kernels/codegen/kernel.h"
#include "tests/softcuda/block.h"

namespace tutti::softcuda {
namespace {

using codegen::cases::Array;

/// Buffers in the device's memory, each aligned as cuMemAlloc's.
class Buffers {
 public:
  explicit Buffers(Memory& memory) : memory_(memory) {}
  void add(const std::vector<std::byte>& content) {
    add(content.size());
    std::memcpy(at(size() - 1), content.data(), content.size());
    memory_.written(address(size() - 1), content.size());
  }
  void add(uint64_t bytes) {
    size_t whole = (bytes + 511) / 512 * 512 + 512;
    all_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(512, whole)), std::free);
    std::memset(all_.back().get(), 0xff, whole);
    memory_.add(address(size() - 1), bytes);
  }
  size_t size() const { return all_.size(); }
  std::byte* at(size_t k) const { return all_.at(k).get(); }
  uint64_t address(size_t k) const { return reinterpret_cast<uint64_t>(at(k)); }

 private:
  Memory& memory_;
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> all_;
};

void launch(const cuda::NvrtcApi& nvrtc, const std::string& architecture, Memory& memory, Buffers& buffers,
            const codegen::Launch& d, uint64_t number, const Changes& changes) {
  codegen::KernelSource source = render(codegen::cases::target(codegen::Language::cuda_c(), false), *d.kernel);
  std::vector<std::byte> binary = cuda::compile(nvrtc, source, architecture).code;
  std::string text = reinterpret_cast<const char*>(binary.data());
  std::unique_ptr<Module> module = parse(changes.text ? changes.text(text) : text);
  for (const auto& [name, data] : module->data) {
    memory.add(data.address, data.bytes.size());
    memory.written(data.address, data.bytes.size());
  }
  Grid grid;
  grid.function = &module->functions.begin()->second;
  grid.blocks = {d.groups[0], d.groups[1], d.groups[2]};
  grid.threads = {source.local[0], source.local[1], source.local[2]};
  grid.launch = number;
  std::vector<int> places = d.buffers;
  if (changes.arguments) changes.arguments(source.entry, places);
  if (!source.numbers.empty()) {
    auto numbers = std::as_bytes(std::span(source.numbers));
    buffers.add(std::vector<std::byte>(numbers.begin(), numbers.end()));
    places.push_back(static_cast<int>(buffers.size()) - 1);
  }
  for (int b : places) {
    uint64_t address = buffers.address(static_cast<size_t>(b));
    const auto* bytes = reinterpret_cast<const unsigned char*>(&address);
    grid.parameters.insert(grid.parameters.end(), bytes, bytes + sizeof address);
  }
  run(grid, memory);
  for (const auto& [name, data] : module->data) memory.remove(data.address);
}

}  // namespace

std::vector<Array> run_kernels(const cuda::NvrtcApi& nvrtc, const std::string& architecture, const Checks& checks,
                               const codegen::LaunchList& work, const std::vector<Array>& inputs,
                               const std::vector<Array>& like, const Changes& changes) {
  Memory memory(checks);
  Buffers buffers(memory);
  for (const Array& a : inputs) buffers.add(a.bytes());
  for (const Array& a : like) buffers.add(a.at.size() * size_of(a.dtype));
  for (uint64_t n : work.scratch_bytes) buffers.add(n);
  uint64_t number = 0;
  for (const codegen::Launch& d : work.launches) launch(nvrtc, architecture, memory, buffers, d, ++number, changes);
  std::vector<Array> results;
  for (size_t r = 0; r < like.size(); ++r) {
    Array a{like[r].dtype, std::vector<double>(like[r].at.size())};
    for (size_t i = 0; i < a.at.size(); ++i) a.at[i] = load_element(a.dtype, buffers.at(inputs.size() + r), i);
    results.push_back(a);
  }
  return results;
}

}  // namespace tutti::softcuda
