#include "verify/parity/tensor_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/os/file.h"

namespace tutti::parity {
namespace {

constexpr const char* checksum_key = "checksum";

/// Hash of names, types and bytes of all tensors and of all metadata except the checksum.
std::string checksum(const Checkpoint& c) {
  uint64_t hash = fnv1a("", 0);
  auto add = [&](const std::string& text) { hash = fnv1a(text.c_str(), text.size() + 1, hash); };
  for (const auto& [key, text] : c.metadata) {
    if (key == checksum_key) continue;
    add(key);
    add(text);
  }
  for (const auto& [name, t] : c.tensors) {
    add(name);
    add(to_string(t.type));
    hash = fnv1a(t.bytes.data(), t.bytes.size(), hash);
  }
  return fmt::format("{:016x}", hash);
}

/// Reads a checkpoint without checking its kind.
Checkpoint read_whole(const std::string& path, const FileKind& kind) {
  std::error_code ec;
  if (!std::filesystem::exists(path, ec))
    throw invalid(fmt::format("{}: there is no such file", path),
                  fmt::format("check the path; {} writes a {}", kind.writer, kind.what));
  if (!std::filesystem::is_regular_file(path, ec))
    throw invalid(fmt::format("{}: not a regular file", path), fmt::format("give a file written by {}", kind.writer));
  if (!os::may_read(path))
    throw invalid(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)), "check its permissions");
  try {
    return read_checkpoint(path);
  } catch (const Error& e) {
    if (e.code != Code::invalid) throw;
    throw invalid(fmt::format("{} (damaged, or not a {})", e.what(), kind.what),
                  fmt::format("copy it again from where {} wrote it, or write it again", kind.writer));
  }
}

}  // namespace

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

void write_tensor_file(const std::string& path, const FileKind& kind, Checkpoint c) {
  c.metadata["format"] = kind.format;
  c.metadata[checksum_key] = checksum(c);
  write_checkpoint(path, c);
}

void read_tensor_file(const std::string& path, const FileKind& kind,
                      const std::function<void(const Checkpoint&)>& take) {
  Checkpoint c = read_whole(path, kind);
  try {
    if (const std::string& format = metadata(c, "format"); format != kind.format)
      throw invalid(fmt::format("its format is '{}', expected '{}'", format, kind.format));
    take(c);
    auto it = c.metadata.find(checksum_key);
    if (it != c.metadata.end() && it->second != checksum(c))
      throw invalid("it is damaged: its contents do not match its checksum");
  } catch (const Error& e) {
    throw invalid(fmt::format("{}: not a valid {}: {}", path, kind.what, e.what()),
                  fmt::format("use a file written by {} of this version", kind.writer));
  }
}

}  // namespace tutti::parity
