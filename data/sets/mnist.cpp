// Data sets in MNIST's layout: four IDX files in a folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"
#include "data/idx.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

// The file in the folder, plain or gzipped, in either naming scheme; "" if there is none.
std::string find(const fs::path& folder, const std::string& what, const std::string& rank) {
  for (const char* joint : {"-", "."})
    for (const char* ending : {"", ".gz"}) {
      fs::path path = folder / fmt::format("{}{}{}-ubyte{}", what, joint, rank, ending);
      std::error_code error;
      if (fs::exists(path, error)) return path.string();
    }
  return "";
}

std::string need(const fs::path& folder, const std::string& what, const std::string& rank) {
  std::string path = find(folder, what, rank);
  if (path.empty())
    throw invalid(
        fmt::format("{}: found neither {}-{}-ubyte nor {}-{}-ubyte.gz", folder.string(), what, rank, what, rank),
        "the folder must contain train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
        "t10k-labels-idx1-ubyte, plain or .gz");
  return path;
}

std::vector<int32_t> read_labels(const std::string& path, size_t& label_bytes) {
  HostTensor t = read_idx(path);
  if (t.type.shape.size() != 1)
    throw invalid(fmt::format("{}, byte 3: rank {}, expected labels of rank 1", path, t.type.shape.size()));
  if (t.type.dtype != DType::u8 && t.type.dtype != DType::i32)
    throw invalid(fmt::format("{}, byte 2: labels are {}, expected u8 or i32", path, name(t.type.dtype)));
  label_bytes = size_of(t.type.dtype);
  std::vector<int32_t> labels(t.bytes.size() / label_bytes);
  if (t.type.dtype == DType::i32) {
    std::memcpy(labels.data(), t.bytes.data(), t.bytes.size());
  } else {
    std::transform(t.bytes.begin(), t.bytes.end(), labels.begin(), [](std::byte b) { return static_cast<int32_t>(b); });
  }
  return labels;
}

Dataset read_half(const fs::path& folder, const std::string& prefix, const std::string& set_name) {
  std::string images = need(folder, prefix + "-images", "idx3"), labels = need(folder, prefix + "-labels", "idx1");
  Dataset d;
  d.name = set_name;
  d.labels_file = labels;
  d.samples = read_idx(images);
  d.labels = read_labels(labels, d.label_bytes);
  Shape& shape = d.samples.type.shape;
  if (d.samples.type.dtype != DType::u8 && d.samples.type.dtype != DType::f32)
    throw invalid(fmt::format("{}, byte 2: images are {}, expected u8 or f32", images, name(d.samples.type.dtype)));
  if (std::optional<size_t> at = not_finite_at(d.samples))
    throw invalid(fmt::format("{}, byte {}: {}, expected finite numbers", images,
                              4 * (1 + shape.size()) + *at * sizeof(float), d.samples.item(*at)),
                  "correct or remove that image");
  if (shape.size() < 2)
    throw invalid(fmt::format("{}, byte 3: rank {}, expected images of rank 2 or more", images, shape.size()));
  if (shape[0] != d.size())
    throw invalid(fmt::format("{}, byte 4: {} images, but {}, byte 4: {} labels", images, shape[0], labels, d.size()),
                  "both files must come from the same data set");
  if (std::count(shape.begin(), shape.end(), 0) > 0)
    throw invalid(fmt::format("{}, byte 4: the dimensions {} contain a 0", images, to_string(shape)));
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);  // grey images: one channel
  return d;
}

Split read_folder(const fs::path& folder, const std::string& set_name, int64_t classes) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw invalid(
        fmt::format("{}: {}", folder.string(), fs::exists(folder, error) ? "not a folder" : "there is no such folder"),
        "give a folder with MNIST's files");
  Split s{read_half(folder, "train", set_name + "/train"), read_half(folder, "t10k", set_name + "/test")};
  if (classes == 0) classes = int64_t{*std::max_element(s.train.labels.begin(), s.train.labels.end())} + 1;
  s.train.classes = s.test.classes = classes;
  if (s.train.sample_type() != s.test.sample_type())
    throw invalid(fmt::format("{}: training samples ({}) and test samples ({}) have different types", folder.string(),
                              to_string(s.train.sample_type()), to_string(s.test.sample_type())),
                  "use image files of the same dtype and shape for both");
  s.train.check();
  s.test.check();
  return s;
}

}  // namespace

Split idx_folder(const std::string& folder, int64_t classes) {
  fs::path path = fs::path(folder).lexically_normal();
  return read_folder(path, path.has_filename() ? path.filename().string() : path.parent_path().filename().string(),
                     classes);
}

namespace {

std::vector<std::string> fashion_mnist_folders() {
  std::vector<std::string> folders;
  if (const char* own = std::getenv("TUTTI_DATA_DIR"); own && *own) {
    folders.push_back((fs::path(own) / "fashion-mnist").string());
    folders.emplace_back(own);
  }
  folders.emplace_back("/usr/share/datasets/fashion-mnist");  // Debian's and Ubuntu's package dataset-fashion-mnist
  return folders;
}

/// The first of the folders that contains it, or "".
std::string fashion_mnist_folder() {
  for (const std::string& folder : fashion_mnist_folders())
    if (!find(folder, "train-images", "idx3").empty()) return folder;
  return "";
}

std::optional<Error> fashion_mnist_not_installed() {
  if (!fashion_mnist_folder().empty()) return std::nullopt;
  return invalid(
      fmt::format("fashion-mnist: no train-images-idx3-ubyte[.gz] in {}", fmt::join(fashion_mnist_folders(), ", ")),
      "install it with: apt install dataset-fashion-mnist; or set TUTTI_DATA_DIR to the folder that holds it; "
      "or use " +
          option_text("data", "synthetic:1x28x28:10"));
}

}  // namespace

Split fashion_mnist() {
  if (std::optional<Error> e = fashion_mnist_not_installed()) throw *e;
  Split s = read_folder(fashion_mnist_folder(), "fashion-mnist", 10);
  s.train.vocabulary = s.test.vocabulary =
      R"(["T-shirt/top","Trouser","Pullover","Dress","Coat","Sandal","Shirt","Sneaker","Bag","Ankle boot"])";
  return s;
}

namespace {

/// Centers the grey images [1, h, w] in [channels, height, width], padded with zeros, and repeats the channel.
void enlarge(Dataset& d, int64_t channels, int64_t height, int64_t width) {
  const Shape from = d.samples.type.shape;
  int64_t h = from[2], w = from[3], top = (height - h) / 2, left = (width - w) / 2;
  HostTensor out{{DType::u8, {from[0], channels, height, width}}, {}};
  out.bytes.resize(num_bytes(out.type));
  for (int64_t plane = 0; plane < from[0] * channels; ++plane)
    for (int64_t y = 0; y < h; ++y)
      std::memcpy(out.bytes.data() + (plane * height + top + y) * width + left,
                  d.samples.bytes.data() + (plane / channels * h + y) * w, static_cast<size_t>(w));
  d.samples = std::move(out);
}

Sources open_enlarged(const std::string& spec, const OpenOptions&) {
  std::vector<int64_t> sizes;
  for (const std::string& part : fields(spec.substr(spec.find(':') + 1), 'x'))
    sizes.push_back(parse_number<int64_t>(part).value_or(0));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[0] > 4 || sizes[1] < 28 || sizes[2] < 28 || sizes[1] > 256 ||
      sizes[2] > 256)
    throw invalid(fmt::format("data '{}': expected fashion-mnist:CxHxW, 1 to 4 channels and sides of 28 to 256", spec),
                  "fashion-mnist:3x32x32");
  Split s = fashion_mnist();
  for (Dataset* d : {&s.train, &s.test}) enlarge(*d, sizes[0], sizes[1], sizes[2]);
  return std::move(s).sources();
}

}  // namespace

extern const DataForm fashion_mnist_form{
    .name = "fashion-mnist",
    .form = "fashion-mnist",
    .open = [](const std::string&, const OpenOptions&) { return fashion_mnist().sources(); },
    .not_installed = fashion_mnist_not_installed};

extern const DataForm fashion_mnist_enlarged_form{.name = "fashion-mnist",
                                                  .form = "fashion-mnist:CxHxW (zeros around, the channel repeated)",
                                                  .open = open_enlarged,
                                                  .takes_arguments = true,
                                                  .not_installed = fashion_mnist_not_installed};

extern const DataForm idx_form{
    .name = "idx",
    .form = "idx:DIR (a folder in MNIST's layout)",
    .open = [](const std::string& spec, const OpenOptions&) { return idx_folder(spec.substr(4)).sources(); },
    .takes_arguments = true};

}  // namespace tutti::data
