// tutti data: describes a data set; writes its columns to a safetensors or .npz file and its first images to a PNG.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/number.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/run_options.h"
#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/dataset.h"
#include "data/files/checkpoint.h"
#include "data/files/npz.h"
#include "data/files/png.h"
#include "data/form.h"
#include "data/loader.h"
#include "data/synthetic.h"

namespace tutti::cli {
namespace {

constexpr int64_t most_images = 1024;

HostTensor first_samples(const data::Source& source, const std::string& column, int64_t samples) {
  return data::read_samples(source, column, data::sequential_order(samples));
}

/// u8 divided by 255.
HostTensor as_pixels(const HostTensor& t) {
  std::vector<float> values = t.to(DType::f32).as<float>();
  if (t.type.dtype == DType::u8)
    for (float& x : values) x /= 255;
  return host_tensor(DType::f32, t.type.shape, values);
}

struct DataCommand {
  std::string spec, output, png;
  data::OpenOptions open;
  int64_t count = 64;
  bool counted = false, sized = false;
  bool json = false;

  int operator()() {
    Target targets[] = {{"--output", &output}, {"--png", &png}};
    check_targets(targets);
    for (auto [option, file] : targets)
      if (*file == "-") throw invalid(fmt::format("{} -: cannot be written to stdout", option), "name a file");
    if (count < 1 || count > most_images)
      throw invalid_option("count", count, fmt::format("must be from 1 to {}", most_images), "for example --count 64");
    if (open.context < (sized ? 1 : 0)) throw invalid_option("context", open.context, "must be at least 1");
    if (counted && png.empty()) throw invalid_option("count", count, "has no effect without --png", "add --png FILE");
    data::Sources all = data::open_data(spec, open);
    for (const std::string& note : all.train->notes) print_err("{}\n", note);
    if (!output.empty()) write_columns(all);
    if (!png.empty()) write_picture(*all.train);
    report(all);
    return done;
  }

  void write_columns(const data::Sources& all) const {
    uint64_t bytes = 0;
    for (const data::Source* s : {all.train.get(), all.test.get()})
      for (const data::Column& c : s->columns()) bytes += static_cast<uint64_t>(s->size()) * num_bytes(c.type);
    data::fitting(spec, bytes);
    Checkpoint file;
    for (const data::Column& c : all.train->columns()) {
      file.tensors[c.name] = first_samples(*all.train, c.name, all.train->size());
      file.tensors["test." + c.name] = first_samples(*all.test, c.name, all.test->size());
      if (c.classes > 0) file.metadata["classes." + c.name] = fmt::format("{}", c.classes);
    }
    if (!output.ends_with(".npz")) return write_checkpoint(output, file);
    for (const auto& [key, count] : file.metadata)
      file.tensors[key] = host_tensor(DType::i64, {}, std::vector<int64_t>{parse_number<int64_t>(count).value_or(0)});
    write_npz(output, file.tensors);
  }

  void write_picture(const data::Source& train) const {
    for (const data::Column& c : train.columns()) {
      const Shape& s = c.type.shape;
      if (s.size() != 3 || (s[0] != 1 && s[0] != 3)) continue;
      if (c.type.dtype != DType::u8 && c.type.dtype != DType::f32) continue;
      write_png_grid(png, as_pixels(first_samples(train, c.name, std::min(count, train.size()))));
      return;
    }
    throw invalid_option("png", png, fmt::format("{} has no column of images u8 or f32 [1 or 3, H, W]", spec),
                         "omit --png");
  }

  void report(const data::Sources& all) const {
    nlohmann::ordered_json columns = nlohmann::ordered_json::array();
    if (!json) print_out("{}: {} samples to train on, {} for the test\n", spec, all.train->size(), all.test->size());
    for (const data::Column& c : all.train->columns()) {
      std::vector<std::string> names = data::classes_in(all.train->vocabulary);
      if (c.name != "label" || names.size() != static_cast<size_t>(c.classes)) names.clear();
      columns.push_back(
          {{"name", c.name}, {"dtype", name(c.type.dtype)}, {"shape", c.type.shape}, {"classes", c.classes}});
      if (!names.empty()) columns.back()["class_names"] = names;
      if (!json)
        print_out("  {:<12} {}{}{}\n", c.name, to_string(c.type),
                  c.classes > 0 ? fmt::format(", from 0 to {}", c.classes - 1) : "",
                  names.empty() ? "" : ": " + first_of(names, ", "));
    }
    if (json)
      print_json({{"data", spec},
                  {"train_samples", all.train->size()},
                  {"test_samples", all.test->size()},
                  {"columns", columns},
                  {"output", output},
                  {"png", png}});
    for (const std::string& file : {output, png})
      if (!json && !file.empty()) print_out("wrote {}\n", file);
  }
};

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("data", "Show what a data set contains; write its columns or a picture of it");
  static DataCommand command;
  std::vector<std::string> forms;
  for (const data::DataForm* f : data::all_data_forms()) forms.push_back(f->form);
  sub->add_option("data", command.spec, fmt::format("{}", fmt::join(forms, "; ")))->required();
  sub->add_option("--output", command.output,
                  "Write all columns to this file, which --data safetensors:FILE (or npz:FILE for .npz) reads");
  sub->add_option("--png", command.png, "Write a picture of the first training images to this file");
  CLI::Option* counted = sub->add_option("--count", command.count, "Number of images in the picture")
                             ->capture_default_str()
                             ->check(whole<int64_t>);
  CLI::Option* sized = sub->add_option("--context", command.open.context, "Tokens per text sample (default: 256)")
                           ->check(whole<int64_t>);
  add_data_options(*sub, command.open);
  add_json_flag(*sub, command.json);
  sub->footer("Example: tutti data shapes:64 --png shapes.png --output shapes.safetensors");
  sub->callback([&action, counted, sized] {
    command.counted = !counted->empty();
    command.sized = !sized->empty();
    action = [] { return command(); };
  });
}

}  // namespace tutti::cli
