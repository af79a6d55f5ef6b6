#include "data/files/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "core/base/text.h"
#include "data/files/zip.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t longest_header = 100'000'000;  // of a safetensors file

/// Any of the archives that begin with a zip entry.
FileKind kind_of_zip(const std::string& path) try {
  ZipFile zip(path);
  auto any = [&](std::string_view ending) {
    return std::ranges::any_of(zip.entries(), [&](const ZipEntry& e) { return e.name.ends_with(ending); });
  };
  return any("data.pkl") ? FileKind::torch : any(".npy") ? FileKind::npz : FileKind::zip;
} catch (const Error&) {  // damaged: its reader says where
  return FileKind::npz;
}

bool is_onnx(std::string_view bytes) {
  // A ModelProto begins with its ir_version (field 1, a small number) and another field, which is a text or a message.
  constexpr std::string_view next("\x12\x1a\x22\x32\x3a\x42", 6);
  return bytes.size() > 2 && bytes[0] == 0x08 && bytes[1] > 0 && bytes[1] < 32 && next.find(bytes[2]) != next.npos;
}

bool is_safetensors(std::string_view bytes) {
  if (bytes.size() < 9 || bytes[8] != '{') return false;
  uint64_t length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length <= longest_header;
}

bool is_pickle(std::string_view bytes) {
  return bytes.size() > 1 && static_cast<unsigned char>(bytes[0]) == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
}

struct Known {
  const char* text;
  const char* remedy;
};

constexpr const char* to_safetensors =
    "convert it: python3 -c 'import sys, torch, safetensors.torch as s; s.save_file({{k: v.contiguous().clone() for k, "
    "v "
    "in torch.load(sys.argv[1], map_location=\"cpu\", weights_only=True).items()}}, sys.argv[2])' {0} {0}.safetensors";

Known known(FileKind kind) {
  switch (kind) {
    case FileKind::safetensors: return {"a safetensors file", "name it with the extension .safetensors"};
    case FileKind::gguf: return {"a GGUF file", "name it with the extension .gguf"};
    case FileKind::npz: return {"a .npz file of NumPy", "name it with the extension .npz"};
    case FileKind::onnx: return {"an ONNX model", "name it with the extension .onnx"};
    case FileKind::torch: return {"weights of PyTorch (a zip archive with a pickle)", to_safetensors};
    case FileKind::pickle: return {"a pickle of Python", to_safetensors};
    case FileKind::json: return {"a JSON file", "name the file with the weights, or its index (.index.json)"};
    case FileKind::hdf5: return {"an HDF5 file", "export the model to ONNX, for example with tf2onnx"};
    case FileKind::npy: return {"a single array (.npy) of NumPy", "write named arrays: np.savez"};
    case FileKind::zip: return {"a zip archive", "unpack it, and name the file with the weights"};
    case FileKind::folder: return {"a folder", "name a file in it"};
    case FileKind::other: break;
  }
  return {"none of the formats of models", "use another file"};
}

}  // namespace

FileKind file_kind(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return FileKind::folder;
  if (!fs::is_regular_file(path, error)) return FileKind::other;
  std::array<char, 64> begin{};
  std::ifstream in(std::filesystem::path(path), std::ios::binary);
  in.read(begin.data(), begin.size());
  std::string_view bytes(begin.data(), static_cast<size_t>(in.gcount()));
  if (bytes.starts_with("GGUF")) return FileKind::gguf;
  if (bytes.starts_with("PK\x03\x04")) return kind_of_zip(path);
  if (bytes.starts_with("\x89HDF\r\n\x1a\n")) return FileKind::hdf5;
  if (bytes.starts_with("\x93NUMPY")) return FileKind::npy;
  if (is_safetensors(bytes)) return FileKind::safetensors;
  if (is_pickle(bytes)) return FileKind::pickle;
  if (is_onnx(bytes)) return FileKind::onnx;
  size_t text = bytes.find_first_not_of(" \t\r\n");
  bool object = text != bytes.npos && bytes[text] == '{';
  size_t key = object ? bytes.find_first_not_of(" \t\r\n", text + 1) : bytes.npos;
  return key != bytes.npos && (bytes[key] == '"' || bytes[key] == '}') ? FileKind::json : FileKind::other;
}

Error foreign_file(const std::string& path, FileKind kind, const std::string& wanted) {
  Known k = known(kind);
  return invalid(fmt::format("{}: {}, expected {}", path, k.text, wanted), fmt::format(fmt::runtime(k.remedy), path));
}

std::string weights_in_folder(const std::string& folder) {
  std::error_code error;
  for (const char* usual : {"model.safetensors", "model.safetensors.index.json"})
    if (fs::is_regular_file(fs::path(folder) / usual, error)) return (fs::path(folder) / usual).string();
  std::vector<std::string> all, weights;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    all.push_back(name);
    for (const char* ending : {".safetensors", ".gguf", ".onnx", ".npz"})
      if (name.ends_with(ending)) weights.push_back(at->path().string());
  }
  if (weights.size() == 1) return weights[0];
  std::ranges::sort(all);
  for (const std::string& name : all) {
    const std::string path = (fs::path(folder) / name).string();
    const FileKind kind = weights.empty() ? file_kind(path) : FileKind::other;
    if (kind == FileKind::torch || kind == FileKind::pickle) throw foreign_file(path, kind, "a safetensors file");
  }
  std::ranges::sort(weights);
  throw invalid(
      fmt::format("{}: a folder with {}", folder,
                  weights.empty() ? "no file of weights" : fmt::format("{} files of weights", weights.size())),
      !weights.empty() ? "name one: " + alternatives(weights)
      : all.empty()    ? "the folder is empty"
                       : "it contains " + first_of(all, ", "));
}

}  // namespace tutti
