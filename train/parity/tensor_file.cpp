#include "train/parity/tensor_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/status.h"

namespace tutti::parity {

const std::string& metadata(const Checkpoint& c, const char* key) {
  auto it = c.metadata.find(key);
  if (it == c.metadata.end()) throw invalid(fmt::format("the metadata has no '{}'", key));
  return it->second;
}

void put(Checkpoint& c, const std::string& name, const Tensor& t) {
  HostTensor h{t.type, std::vector<std::byte>(num_bytes(t.type))};
  store_tensor(t, h.bytes.data());
  c.tensors.emplace(name, std::move(h));
}

void read_tensor_file(const std::string& path, const FileKind& kind,
                      const std::function<void(const Checkpoint&)>& take) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec)) throw invalid(fmt::format("{}: there is no such file", path));
  Checkpoint c = read_checkpoint(path);
  try {
    if (const std::string& format = metadata(c, "format"); format != kind.format)
      throw invalid(fmt::format("its format is '{}', expected '{}'", format, kind.format));
    take(c);
  } catch (const Error& e) {
    throw invalid(fmt::format("{}: not a {} that can be used: {}", path, kind.what, e.what()), kind.remedy);
  }
}

}  // namespace tutti::parity
