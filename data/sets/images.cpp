// PNG and JPEG files in one folder per class. Files are decoded when a batch is loaded, so the set may be larger than
// the memory; only names and labels are kept.
//
// DIR/train/CLASS/* and DIR/test/CLASS/* (or val, valid, validation), or DIR/CLASS/*, of which test_split (data/form.h)
// makes the test set. Without labels, a folder of images or a single one.
// Classes are numbered in byte order of their names. All images must have the same size, which is checked from their
// headers when the set is opened; they are grey if all files are, else RGB. Names that begin with a dot and files
// beside the class folders are ignored.
//
// A model stores the class names and the size of the images, so that other folders get the same numbers.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/files/image_file.h"
#include "data/form.h"
#include "data/tokenizer.h"

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
      : Source(set_name), classes_(static_cast<int64_t>(classes.size())), listing_(std::move(listing)), form_(form) {}
  int64_t size() const override { return static_cast<int64_t>(listing_.files.size()); }
  bool parallel() const override { return true; }
  std::string sample_name(int64_t i) const override { return listing_.files[static_cast<size_t>(i)]; }
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
    if (is_folder(path)) {
      names.push_back(path.filename().string());
      code_points(names.back(),
                  fmt::format("the name of the folder {}", path.string()));  // checkpoints store it as JSON
    }
  if (names.empty())
    throw invalid(fmt::format("{}: the folder has no subfolders, expected one per class", folder.string()),
                  "put the images into folders named by their class: DIR/CLASS/*.png");
  return names;
}

/// What a checkpoint keeps of the images that a model was trained on.
struct Known {
  std::vector<std::string> classes;
  std::optional<ImageForm> form;  ///< none in older checkpoints
};

std::string to_text(const Known& known) {
  const ImageForm& f = *known.form;
  return nlohmann::json{{"classes", known.classes}, {"image", {f.channels, f.height, f.width}}}.dump();
}

/// Parses the text of a checkpoint, which may be damaged; "": nothing is known.
Known known_images(const std::string& vocabulary) {
  if (vocabulary.empty()) return {};
  Known known{.classes = classes_in(vocabulary), .form = {}};
  if (known.classes.empty())
    throw invalid(
        "the checkpoint has no valid list of image classes: it was not trained on a folder of images, or it is damaged",
        "use the data it was trained on");
  auto all = nlohmann::json::parse(vocabulary, nullptr, false);
  if (!all.is_object()) return known;
  auto image = all.value("image", nlohmann::json());
  if (!image.is_array() || image.size() != 3 ||
      !std::ranges::all_of(image, [](const auto& n) { return n.is_number_integer() && n > 0; }))
    throw invalid("the checkpoint has no valid size of its images: it is damaged", "use another checkpoint");
  ImageForm form;
  form.channels = image[0], form.height = image[1], form.width = image[2];
  known.form = form;
  return known;
}

/// The images of one class; without `labelled`, a folder or a single file of any class.
Listing unlabelled_images(const fs::path& path) {
  Listing all;
  if (!is_folder(path)) all.files.push_back(path.string());
  const auto files = is_folder(path) ? entries(path) : std::vector<fs::path>();
  if (std::ranges::any_of(files, is_folder)) return all;  // files beside folders are ignored
  for (const fs::path& file : files) all.files.push_back(file.string());
  all.labels.resize(all.files.size());
  return all;
}

/// All images below that folder. Throws Error(invalid) for a class that is not in `classes`, if `labelled`.
Listing list_images(const fs::path& folder, const std::vector<std::string>& classes, bool labelled) {
  Listing all;
  if (!labelled) {
    Listing flat = unlabelled_images(folder);
    if (!flat.files.empty()) return flat;
  }
  for (const std::string& name : class_names(folder)) {
    fs::path path = folder / name;
    auto known = std::ranges::find(classes, name);
    if (known == classes.end() && labelled)
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
      all.labels.push_back(known == classes.end() ? 0 : static_cast<int32_t>(known - classes.begin()));
    }
  }
  if (all.files.size() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{}: {} images; the maximum is 2^31 - 1", folder.string(), all.files.size()));
  return all;
}

/// Throws Error(invalid) for an image that does not fit those that the model was trained on.
void expect_form(const ImageForm& known, const Listing& part) {
  for (const std::string& file : part.files) {
    ImageForm one = image_form(file);
    if (one.width != known.width || one.height != known.height)
      throw invalid(fmt::format("{}: the image has {}x{} pixels, but the model was trained on {}x{}", file, one.width,
                                one.height, known.width, known.height),
                    fmt::format("resize it, for example with ImageMagick: mogrify -resize '{}x{}!' FILE", known.width,
                                known.height));
    if (one.channels > known.channels)
      throw invalid(fmt::format("{}: the image has colours, but the model was trained on grey images", file),
                    "convert it, for example with ImageMagick: mogrify -colorspace Gray FILE");
  }
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

/// The folder of test images beside "train"; "" if there is none.
fs::path test_folder(const fs::path& folder) {
  for (const char* name : {"test", "val", "valid", "validation"})
    if (is_folder(folder / name)) return folder / name;
  return {};
}

/// Moves the test samples out of `all`.
std::pair<Listing, Listing> divided(const Listing& all, const TrainTestSplit& parts) {
  std::pair<Listing, Listing> both;
  for (auto [half, numbers] : {std::pair(&both.first, &parts.train), std::pair(&both.second, &parts.test)})
    for (int32_t i : *numbers) {
      half->files.push_back(all.files[static_cast<size_t>(i)]);
      half->labels.push_back(all.labels[static_cast<size_t>(i)]);
    }
  return both;
}

void expect_path(const fs::path& path, bool labelled) {
  std::error_code ignored;
  if (is_folder(path) || (!labelled && fs::is_regular_file(path, ignored))) return;
  throw invalid(
      fmt::format("{}: {}", path.string(), fs::exists(path, ignored) ? "not a folder" : "there is no such folder"),
      "give a folder of images: images:DIR");
}

Sources open(const std::string& spec, const OpenOptions& options) {
  fs::path folder = spec.substr(spec.find(':') + 1), tests = test_folder(folder);
  std::error_code ignored;
  expect_path(folder, options.labelled);
  std::string name = fs::weakly_canonical(folder, ignored).filename().string();
  bool trains = is_folder(folder / "train");
  if (trains != !tests.empty() && class_names(folder).size() == 1)
    throw invalid(
        fmt::format("{}: the folder contains only '{}'", folder.string(), trains ? "train" : tests.filename().string()),
        fmt::format("add the other half as {}, or give {} itself: a part of it becomes the test set",
                    (folder / (trains ? "test" : "train")).string(), (trains ? folder / "train" : tests).string()));
  bool in_two = trains && !tests.empty();
  if (in_two && options.test_fraction != 0) throw has_test_set(folder.string(), options.test_fraction);
  fs::path train_folder = in_two ? folder / "train" : folder;
  Known known = known_images(options.vocabulary);
  if (known.classes.empty()) known.classes = class_names(train_folder);
  Listing train = list_images(train_folder, known.classes, options.labelled), test;
  bool whole = options.whole && !in_two;
  if (in_two) {
    test = list_images(tests, known.classes, options.labelled);
  } else if (!whole) {
    if (train.files.size() < 2)
      throw invalid(fmt::format("{}: only one image; at least two are needed, because one is used for the test set",
                                folder.string()),
                    "add more images");
    std::tie(train, test) = divided(train, test_split(static_cast<int64_t>(train.files.size()), options.test_fraction));
  }
  if (known.form)
    for (const Listing* part : {&train, &test}) expect_form(*known.form, *part);
  else
    known.form = common_form({&train, &test});
  auto part = [&](const char* half, Listing&& listing) {
    auto set = std::make_shared<ImageFolder>(name + half, known.classes, std::move(listing), *known.form);
    set->vocabulary = to_text(known);
    return set;
  };
  auto first = part(whole ? "" : "/train", std::move(train));
  return {first, whole ? first : part("/test", std::move(test))};
}

}  // namespace

extern const DataForm images_form{
    .name = "images",
    .form =
        "images:DIR (PNG and JPEG files of one size as DIR/CLASS/*, or DIR/train/CLASS/* and DIR/test/CLASS/* or "
        "DIR/val/CLASS/*)",
    .open = open,
    .takes_arguments = true,
    .takes = {"test-data", "test-fraction"}};

}  // namespace tutti::data
