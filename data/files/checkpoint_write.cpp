#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "data/files/checkpoint.h"
#include "data/files/safetensors.h"
#include "data/files/whole_file.h"

namespace tutti {
namespace {

using Named = std::pair<const std::string, HostTensor>;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

// Length prefix and JSON of the file for tensors in this order.
std::string make_header(const std::string& path, const std::vector<const Named*>& order, const Checkpoint& checkpoint) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t at = 0;
  for (const Named* entry : order) {
    const auto& [name, tensor] = *entry;
    if (name == "__metadata__") throw invalid(fmt::format("{}: a tensor must not be named __metadata__", path));
    if (tensor.bytes.size() != num_bytes(tensor.type))
      throw invalid(fmt::format("{}: tensor '{}' of type {} needs {} bytes, but {} were given", path, name,
                                to_string(tensor.type), num_bytes(tensor.type), tensor.bytes.size()));
    header[name] = {{"dtype", safetensors::name(tensor.type.dtype)},
                    {"shape", tensor.type.shape},
                    {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  if (!checkpoint.metadata.empty()) header["__metadata__"] = checkpoint.metadata;
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& e) {
    throw invalid(fmt::format("{}: a tensor name or a metadata string is not UTF-8: {}", path, e.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the tensors aligned
  if (text.size() > safetensors::max_header)
    throw invalid(fmt::format("{}: the header would have {} bytes; the format allows at most {}", path, text.size(),
                              safetensors::max_header));
  uint64_t length = text.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &length, 8);
  return prefix + text;
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<const Named*> order;
  for (const auto& entry : checkpoint.tensors) order.push_back(&entry);
  // Wide elements first, then by name: aligns every tensor to its element size.
  std::stable_sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return size_of(a->second.type.dtype) > size_of(b->second.type.dtype);
  });
  std::string header = make_header(path, order, checkpoint);
  uint64_t bytes = header.size();
  for (const Named* entry : order) bytes += entry->second.bytes.size();

  WholeFile file(path, bytes);
  file.write(header.data(), header.size());
  for (const Named* entry : order) file.write(entry->second.bytes.data(), entry->second.bytes.size());
  file.become_target();
}

}  // namespace tutti
