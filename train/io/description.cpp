#include "train/io/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"
#include "data/files/strict_json.h"
#include "train/io/stack.h"
#include "train/step/optimizer.h"
#include "train/task/losses.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr size_t most_bytes = 1 << 20;
constexpr int64_t unknown_tokens = 65,
                  unknown_outputs = 10;  // sizes of synthetic data if the file leaves them to the data

/// Line and column of a byte offset: "line 3, column 12".
std::string place_in(const std::string& text, size_t at) {
  size_t end = std::min(at, text.size()), line = 1, column = 1;
  for (size_t i = 0; i < end; ++i) {
    ++column;
    if (text[i] == '\n') ++line, column = 1;
  }
  return fmt::format("line {}, column {}", line, column);
}

json parse(const std::string& text, const std::string& file) {
  return parse_strict(text, {.depth = 64, .list = 10000}, [&](size_t at, const std::string& what) {
    size_t reason = what.find("syntax error");
    throw invalid(fmt::format("{}{}: {}", file, at > 0 ? ", " + place_in(text, at) : "",
                              printable(reason == std::string::npos ? what : what.substr(reason))),
                  "correct the JSON: names and strings in double quotes, commas between elements, none after the last");
  });
}

class Description {
 public:
  Description(const std::string& text, std::string file) : file_(std::move(file)), json_(parse(text, file_)) {
    if (!json_.is_object()) fail("the file", "expected an object", "{\"layers\": […], \"loss\": \"cross_entropy\"}");
    static const std::vector<std::string> known = {"name", "doc",   "input",     "layers", "loss",
                                                   "data", "batch", "optimizer", "lr"};
    for (const auto& [key, value] : json_.items())
      if (std::ranges::find(known, key) == known.end())
        fail("the file", fmt::format("unknown key '{}'", printable(key)), did_you_mean(key, known));
    name = text_of("name", std::filesystem::path(file_).stem().string());
    doc = text_of("doc", "described in " + file_);
    data = text_of("data", "");
    optimizer = text_of("optimizer", "adam");
    loss_ = text_of("loss", "cross_entropy");
    named("optimizer", [&] { optimizer_named(optimizer); });
    named("loss", [&] { find_loss(loss_); });
    if (json_.contains("input")) input_ = read_input();
    if (json_.contains("batch")) {
      const json& j = json_["batch"];
      if (!j.is_number_integer() || j < 1 || j > (1 << 24))
        fail("batch", fmt::format("{}, expected an integer of at least 1", told(j)), "\"batch\": 64");
      batch = j;
    }
    if (json_.contains("lr")) {
      const json& j = json_["lr"];
      if (!j.is_number() || !(j > 0))
        fail("lr", fmt::format("{}, expected a number above 0", told(j)), "\"lr\": 0.001");
      lr = j;
    }
    if (!json_.contains("layers")) fail("the file", "the key \"layers\" is missing", "\"layers\": [\"Flatten\", …]");
    stack({});
  }

  Task task(const ModelOptions& o, const data::Source& train) const {
    const Loss& loss = loss_of(o);
    DataSizes sizes{.known = true};
    data::Column in;
    try {
      in = train.column(loss.input);
      sizes.tokens = in.classes;
      if (loss.outputs) sizes.outputs = loss.outputs(train);
    } catch (const Error& e) {
      throw of_loss(file_, loss, e);
    }
    if (!o.context && input_ && loss.input == "input" && *input_ != in.type.shape)
      throw invalid(fmt::format("{}: \"input\" is {}, but a sample of {} is {}", file_, to_string(*input_), o.data,
                                to_string(in.type)),
                    "change or remove \"input\", or use other data");
    Stack s = stack(sizes);
    return Task(
        [layers = s.layers, tokens = s.tokens, &loss, file = file_](nn::Builder& b, const Batch& x) {
          Value y = b.output(layers.forward(b, tokens ? x[loss.input] : b.input(x.standardised(loss.input))));
          try {
            Outcome out = loss.outcome(b, y, x);
            if (tokens) x.class_ids(loss.input, tokens);
            return out;
          } catch (const Error& e) {
            throw of_loss(file, loss, e);
          }
        },
        s.layers.describe());
  }

  std::string synthetic(const ModelOptions& o, int64_t samples) const {
    const Loss& loss = loss_of(o);
    if (!input_)
      throw invalid(
          fmt::format("{}: no data set is given, and without \"data\" or \"input\" in the file no synthetic data can "
                      "be generated",
                      file_),
          "use a data set: " + option_text("data", "…") + ", or give the shape of a sample: \"input\": [1, 28, 28]");
    Stack s = stack({.known = true, .tokens = unknown_tokens, .outputs = unknown_outputs});
    Graph g;
    nn::Builder b(g, false);
    Shape two = *input_;
    two.insert(two.begin(), 2);
    Shape y = s.layers.forward(b, g.feed(loss.input, {s.tokens ? DType::i32 : DType::f32, two})).shape();
    y.erase(y.begin());
    std::string spec = loss.synthetic ? loss.synthetic(*input_, s.tokens, y, samples) : "";
    if (spec.empty())
      throw invalid(fmt::format("{}: no synthetic data can be generated for loss {}, input {} and output {}", file_,
                                loss.name, to_string(*input_), to_string(y)),
                    "use a data set: " + option_text("data", "…"));
    return spec;
  }

  int64_t context(const ModelOptions& o) const {
    constexpr int64_t usual = 256;
    return o.context > 0 ? o.context : input_ && input_->size() == 1 ? (*input_)[0] : usual;
  }
  bool reads_text() const { return find_loss(loss_).input == "tokens"; }

  std::string name, doc, data, optimizer;
  int64_t batch = 64;
  double lr = 0;

 private:
  [[noreturn]] void fail(const std::string& place, const std::string& what, const std::string& remedy) const {
    throw invalid(fmt::format("{}: {}: {}", file_, place, what), remedy);
  }
  static std::string told(const json& j) {
    return printable(j.dump(-1, ' ', false, json::error_handler_t::replace), 80);
  }
  static Error of_loss(const std::string& file, const Loss& loss, const Error& e) {
    return {e.code, fmt::format("{}: loss {}: {}", file, loss.name, e.what()), e.remedy};
  }

  template <class F>
  void named(const char* key, F check) const {
    try {
      check();
    } catch (const Error& e) {
      fail(key, e.what(), e.remedy);
    }
  }

  std::string text_of(const char* key, const std::string& otherwise) const {
    if (!json_.contains(key)) return otherwise;
    if (!json_[key].is_string())
      fail(key, fmt::format("{}, expected a string", told(json_[key])), "put the value in double quotes");
    return json_[key];
  }

  Shape read_input() const {
    const json& j = json_["input"];
    Shape shape;
    bool good = j.is_array() && j.size() <= 8;
    if (good)
      for (const json& n : j) {
        good = good && n.is_number_integer() && n >= 1 && n <= (1 << 24);
        if (good) shape.push_back(n);
      }
    if (!good) fail("input", fmt::format("{}, expected the shape of a sample", told(j)), "\"input\": [1, 28, 28]");
    return shape;
  }

  const Loss& loss_of(const ModelOptions& o) const { return find_loss(o.loss.empty() ? loss_ : o.loss); }
  Stack stack(const DataSizes& sizes) const { return read_stack(json_["layers"], file_, sizes); }

  std::string file_;
  json json_;
  std::string loss_;
  std::optional<Shape> input_;
};

}  // namespace

ModelDef described_model(const std::string& text, const std::string& file) {
  auto d = std::make_shared<const Description>(text, file);
  ModelDef m{
      .name = d->name,
      .doc = d->doc,
      .sizes =
          {{.name = "file", .doc = "as defined by the file", .batch = d->batch, .eval_batch = d->batch, .lr = d->lr}},
      .build = [d](const ModelOptions& o, const data::Source& train) { return d->task(o, train); },
      .synthetic = [d](const ModelOptions& o, int64_t samples) { return d->synthetic(o, samples); },
      .data = d->data,
      .optimizer = d->optimizer,
      .takes = {"loss"},
      .text = text};
  if (d->reads_text()) m.context = [d](const ModelOptions& o) { return d->context(o); };
  return m;
}

ModelDef read_description(const std::string& path) {
  std::error_code error;
  if (auto bytes = std::filesystem::file_size(path, error); !error && bytes > most_bytes)
    throw invalid(
        fmt::format("{}: the file has {} bytes; a model description can have at most {}", path, bytes, most_bytes),
        "name another file");
  return described_model(data::read_file(path, "check the path, or name a model (`tutti models` lists them)"), path);
}

}  // namespace tutti
