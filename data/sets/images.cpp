// PNG and JPEG files in one folder per class. Files are decoded when a batch is loaded, so the set may be larger than
// the memory; only names and labels are kept.
//
// DIR/train/CLASS/* and DIR/test/CLASS/*, or DIR/CLASS/*, of which last_tenth_for_test (data/form.h) is the test set.
// Classes are numbered in byte order of their names. All images must have the same size, which is checked from their
// headers when the set is opened; they are grey if all files are, else RGB. Names that begin with a dot and files
// beside the class folders are ignored.
//
// A model stores the class names, so that other folders get the same numbers.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/image_file.h"
#include "data/form.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

/// Files and their class indices.
struct Listing {
  std::vector<std::string> files;
  std::vector<int32_t> labels;
};

class ImageFolder : public Source {
 public:
  ImageFolder(const std::string& set_name, const std::vector<std::string>& classes, Listing listing, ImageForm form)
      : Source(set_name), classes_(static_cast<int64_t>(classes.size())), listing_(std::move(listing)), form_(form) {
    vocabulary = nlohmann::json(classes).dump();
  }
  int64_t size() const override { return static_cast<int64_t>(listing_.files.size()); }
  bool parallel() const override { return true; }
  std::vector<Column> columns() const override {
    TensorType image{DType::u8, {form_.channels, form_.height, form_.width}}, label{DType::i32, {}};
    return {{.name = "input", .type = image, .table = ""},
            {.name = "label", .type = label, .table = "label", .classes = classes_}};
  }
  std::vector<Table> tables() const override {
    return {{"label", {DType::i32, {size()}}, reinterpret_cast<const std::byte*>(listing_.labels.data())}};
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    if (column != "input") return Source::read(column, samples, to);
    auto* at = static_cast<std::byte*>(to);
    for (int32_t i : samples) {
      read_image(listing_.files[static_cast<size_t>(i)], form_, at);
      at += form_.channels * form_.height * form_.width;
    }
  }

 private:
  int64_t classes_;
  Listing listing_;
  ImageForm form_;
};

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

/// The contents of a folder in byte order, without names that begin with a dot.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator at(folder, error), end;
  std::vector<fs::path> all;
  for (; !error && at != end; at.increment(error))
    if (!at->path().filename().string().starts_with('.')) all.push_back(at->path());
  if (error)
    throw invalid(fmt::format("{}: the folder cannot be read: {}", folder.string(), error.message()),
                  "check that it exists and its permissions");
  std::ranges::sort(all);
  return all;
}

std::vector<std::string> class_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& path : entries(folder))
    if (is_folder(path)) names.push_back(path.filename().string());
  if (names.empty())
    throw invalid(fmt::format("{}: the folder has no subfolders, expected one per class", folder.string()),
                  "put the images into folders named by their class: DIR/CLASS/*.png");
  return names;
}

/// The classes in a checkpoint, which may be damaged; "": none.
std::vector<std::string> known_classes(const std::string& vocabulary) {
  if (vocabulary.empty()) return {};
  std::vector<std::string> classes = classes_in(vocabulary);
  if (classes.empty())
    throw invalid(
        "the checkpoint has no valid list of image classes: it was not trained on a folder of images, or it is damaged",
        "use the data it was trained on");
  return classes;
}

/// All images below that folder. Throws Error(invalid) for a class that is not in `classes`.
Listing list_images(const fs::path& folder, const std::vector<std::string>& classes) {
  Listing all;
  for (const std::string& name : class_names(folder)) {
    fs::path path = folder / name;
    auto known = std::ranges::find(classes, name);
    if (known == classes.end())
      throw invalid(fmt::format("{}: class '{}' is not one of the {} classes that the model was trained on",
                                path.string(), name, classes.size()),
                    did_you_mean(name, classes));
    std::vector<fs::path> files = entries(path);
    if (files.empty())
      throw invalid(fmt::format("{}: the class folder is empty", path.string()),
                    "put images there, or remove the folder");
    for (const fs::path& file : files) {
      if (is_folder(file))
        throw invalid(fmt::format("{}: this is a folder, expected images of the class '{}'", file.string(), name),
                      "put the images into the class folder itself");
      all.files.push_back(file.string());
      all.labels.push_back(static_cast<int32_t>(known - classes.begin()));
    }
  }
  if (all.files.size() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{}: {} images; the maximum is 2^31 - 1", folder.string(), all.files.size()));
  return all;
}

/// The form of all images; throws Error(invalid) naming the first two of different sizes.
ImageForm common_form(std::initializer_list<const Listing*> parts) {
  const std::string* first = nullptr;
  ImageForm form;
  for (const Listing* half : parts)
    for (const std::string& file : half->files) {
      ImageForm one = image_form(file);
      if (!first) {
        first = &file;
        form = one;
      }
      if (one.width != form.width || one.height != form.height)
        throw invalid(
            fmt::format("the images have different sizes: {} has {}x{} pixels, but {} has {}x{}", *first, form.width,
                        form.height, file, one.width, one.height),
            fmt::format(
                "resize all images to one size, for example with ImageMagick: mogrify -resize '{0}x{1}!' DIR/*/*",
                form.width, form.height));
      form.channels = std::max(form.channels, one.channels);
    }
  return form;
}

Sources open(const std::string& spec, const OpenOptions& options) {
  fs::path folder = spec.substr(spec.find(':') + 1);
  std::error_code ignored;
  if (!is_folder(folder))
    throw invalid(fmt::format("{}: {}", folder.string(),
                              fs::exists(folder, ignored) ? "not a folder" : "there is no such folder"),
                  "give a folder of images: images:DIR");
  std::string name = fs::weakly_canonical(folder, ignored).filename().string();
  bool trains = is_folder(folder / "train"), tests = is_folder(folder / "test");
  if (trains != tests && class_names(folder).size() == 1)
    throw invalid(
        fmt::format("{}: the folder contains only '{}'", folder.string(), trains ? "train" : "test"),
        fmt::format("add the other half as {}, or give {} itself: a tenth of it becomes the test set",
                    (folder / (trains ? "test" : "train")).string(), (folder / (trains ? "train" : "test")).string()));
  bool divided = trains && tests;
  fs::path train_folder = divided ? folder / "train" : folder;
  std::vector<std::string> classes = known_classes(options.vocabulary);
  if (classes.empty()) classes = class_names(train_folder);
  Listing train = list_images(train_folder, classes), test;
  if (divided) {
    test = list_images(folder / "test", classes);
  } else {
    if (train.files.size() < 2)
      throw invalid(fmt::format("{}: only one image; at least two are needed, because one is used for the test set",
                                folder.string()),
                    "add more images");
    Listing all = std::move(train);
    TrainTestSplit parts = last_tenth_for_test(static_cast<int64_t>(all.files.size()));
    train = {};
    for (auto [half, numbers] : {std::pair(&train, &parts.train), std::pair(&test, &parts.test)})
      for (int32_t i : *numbers) {
        half->files.push_back(all.files[static_cast<size_t>(i)]);
        half->labels.push_back(all.labels[static_cast<size_t>(i)]);
      }
  }
  ImageForm form = common_form({&train, &test});
  return {std::make_shared<ImageFolder>(name + "/train", classes, std::move(train), form),
          std::make_shared<ImageFolder>(name + "/test", classes, std::move(test), form)};
}

}  // namespace

extern const DataForm images_form;
const DataForm images_form{
    .name = "images",
    .form = "images:DIR (PNG and JPEG files of one size as DIR/CLASS/*, or DIR/train/CLASS/* and DIR/test/CLASS/*)",
    .open = open,
    .takes_arguments = true};

}  // namespace tutti::data
