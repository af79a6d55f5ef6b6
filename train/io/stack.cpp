#include "train/io/stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

using nlohmann::json;
using nn::Argument;
using nn::LayerKind;

constexpr int64_t most_whole = std::numeric_limits<int32_t>::max();
constexpr int64_t most_layers = 200'000;  // limit, because a short file can request any number of layers
constexpr size_t most_nodes = 200'000;    // graph nodes

/// An error whose message already names the layer.
struct PlacedError : Error {
  using Error::Error;
};

/// A layer of the file; adds its place to errors.
struct Placed {
  struct Expected {
    std::string argument;
    int64_t axis, size;
  };
  std::string place;
  std::vector<Expected> expected;
  nn::Layer layer;

  Value forward(nn::Builder& b, Value x) const try {
    if (b.graph().nodes().size() > most_nodes)
      throw invalid(fmt::format("the model has more than {} graph nodes up to this layer", most_nodes),
                    "use a smaller model");
    for (const auto& [argument, axis, size] : expected) {
      auto rank = static_cast<int64_t>(x.rank());
      int64_t at = axis < 0 ? axis + rank : axis;
      if (at < 1 || at >= rank) continue;  // the layer itself throws
      if (int64_t there = x.shape()[static_cast<size_t>(at)]; there != size)
        throw invalid(fmt::format("{} is {}, but axis {} of the input has size {}", argument, size, at, there),
                      fmt::format("use \"{}\": {}, or omit it", argument, there));
    }
    return layer.forward(b, x);
  } catch (const PlacedError&) {
    throw;
  } catch (const Error& e) {
    if (e.code != Code::invalid) throw;
    throw PlacedError(e.code, fmt::format("{}, with input {}: {}", place, to_string(x.type()), e.what()), e.remedy);
  }
  std::string describe() const { return layer.describe(); }
};

class Reader {
 public:
  Reader(const std::string& file, const DataSizes& sizes) : file_(file), sizes_(sizes) {}

  /// Reads layers with their names, or their indices if they have none. `last`: their output is the model's output.
  nn::NamedLayers list(const json& j, const std::string& place, bool last) {
    nn::NamedLayers all;
    for (size_t i = 0; i < j.size(); ++i) {
      std::string at = fmt::format("{}[{}]", place, i), name = std::to_string(i);
      if (j[i].is_object() && j[i].contains("name")) {
        const json& own = j[i]["name"];
        if (!own.is_string() || own.get<std::string>().empty() || own.get<std::string>().find('.') != std::string::npos)
          fail(at, fmt::format("the name is {}, expected a non-empty string without a dot", told(own)),
               "\"name\": \"head\"");
        name = own;
      }
      if (std::ranges::any_of(all, [&](const auto& layer) { return layer.first == name; }))
        fail(at, fmt::format("an earlier layer is also named '{}'", printable(name)),
             "give each layer a different name");
      all.emplace_back(name, layer(j[i], at, last && i + 1 == j.size()));
    }
    return all;
  }

  int64_t tokens() const { return tokens_; }

  [[noreturn]] void fail(const std::string& place, const std::string& what, const std::string& remedy) const {
    throw invalid(fmt::format("{}: {}: {}", file_, place, what), remedy);
  }
  static std::string told(const json& j) {
    return printable(j.dump(-1, ' ', false, json::error_handler_t::replace), 80);
  }

 private:
  nn::Layer layer(const json& j, const std::string& place, bool last) {
    ++layers_;
    if (j.is_array()) return placed(nn::Sequential(list(j, place, last)), place, "Sequential");
    std::string name;
    json given;
    if (j.is_string()) {
      name = j;
      given = json::object();
    } else if (j.is_object() && j.size() == 1 + j.count("name")) {
      auto it = j.begin();
      if (it.key() == "name") ++it;
      name = it == j.end() ? "" : it.key();
      given = it == j.end() ? json() : it.value();
    }
    if (name.empty())
      fail(place, fmt::format("{}, expected a layer", told(j)),
           "write \"ReLU\", {\"Linear\": {\"out_features\": 10}}, or a list of layers");
    const LayerKind* kind = nullptr;
    try {
      kind = &nn::find_layer_kind(name);
    } catch (const Error& e) {
      fail(place, fmt::format("unknown layer '{}'", printable(name, 80)), e.remedy + "; `tutti layers` lists them");
    }
    return made(*kind, given, place, last);
  }

  nn::Layer placed(nn::Layer layer, const std::string& place, const std::string& kind,
                   std::vector<Placed::Expected> expected = {}) const {
    return Placed{fmt::format("{}: {} ({})", file_, place, kind), std::move(expected), std::move(layer)};
  }

  nn::Layer made(const LayerKind& kind, json given, const std::string& place, bool last) {
    std::string here = fmt::format("{} ({})", place, kind.name);
    // {"residual": […]} is short for {"residual": {"layers": […]}}.
    bool of_layers = !kind.arguments.empty() &&
                     (kind.arguments[0].type == Argument::layers || kind.arguments[0].type == Argument::branches);
    if (of_layers && (given.is_array() || given.is_string())) given = {{kind.arguments[0].name, given}};
    if (!given.is_object())
      fail(here, fmt::format("{}, expected an object of arguments", told(given)),
           fmt::format("{{\"{}\": {{…}}}}", kind.name));
    std::vector<std::string> names;
    for (const Argument& a : kind.arguments) names.push_back(a.name);
    for (const auto& [key, value] : given.items())
      if (std::ranges::find(names, key) == names.end())
        fail(here, fmt::format("unknown argument '{}'", printable(key, 80)),
             names.empty() ? "this layer has no arguments" : did_you_mean(key, names));
    std::map<std::string, nn::ArgumentValue> values;
    std::vector<Placed::Expected> expected;
    int64_t before = layers_;
    for (const Argument& a : kind.arguments) {
      if (given.contains(a.name) && !given[a.name].is_null()) {  // null is treated as missing, like PyTorch's None
        values.emplace(a.name, value(a, given[a.name], here, place, last && kind.name == "Sequential"));
        if (a.axis) expected.push_back({a.name, *a.axis, std::get<int64_t>(values.at(a.name))});
      } else if (a.data != Argument::nowhere) {
        values.emplace(a.name, of_data(a, here, last));
      } else if (a.otherwise) {
        values.emplace(a.name, *a.otherwise);
      } else if (!a.axis) {
        fail(here, fmt::format("the argument '{}' is missing", a.name),
             fmt::format("add \"{}\": {}", a.name, shape_of(a)));
      }
    }
    if (kind.name == "repeat") layers_ = before + (layers_ - before) * std::get<int64_t>(values.at("times"));
    if (layers_ > most_layers)
      fail(here, fmt::format("the file has more than {} layers up to here", most_layers), "use a smaller model");
    if (kind.reads_tokens) {
      int64_t count = std::get<int64_t>(values.at("num_embeddings"));
      tokens_ = tokens_ ? std::min(tokens_, count) : count;
    }
    try {
      return placed(kind.make(nn::Arguments(std::move(values))), place, kind.name, std::move(expected));
    } catch (const Error& e) {
      fail(here, e.what(), e.remedy);
    }
  }

  /// Describes valid values of an argument: "a whole number from 1".
  static std::string shape_of(const Argument& a) {
    if (a.type == Argument::whole) return fmt::format("an integer of at least {}", a.least);
    if (a.type == Argument::flag) return name_of(a.type);
    return "a " + name_of(a.type);
  }

  int64_t of_data(const Argument& a, const std::string& here, bool last) const {
    if (a.data == Argument::outputs && !last)
      fail(here, fmt::format("the argument '{}' is missing", a.name),
           fmt::format("add \"{}\": {}; only in the last layer it may be omitted", a.name, shape_of(a)));
    if (!sizes_.known) return 1;
    int64_t size = a.data == Argument::outputs ? sizes_.outputs : sizes_.tokens;
    if (size < 1)
      fail(here, fmt::format("the argument '{}' is missing, and cannot be inferred from the data", a.name),
           fmt::format("add \"{}\": {}", a.name, shape_of(a)));
    return size;
  }

  static bool whole(const json& j, int64_t least) {
    return j.is_number_integer() && !(j.is_number_unsigned() && j.get<uint64_t>() > uint64_t{most_whole}) && j >= least;
  }

  nn::ArgumentValue value(const Argument& a, const json& j, const std::string& here, const std::string& place,
                          bool last) {
    auto wrong = [&](const std::string& expected) {
      fail(here, fmt::format("{} is {}, expected {}", a.name, told(j), expected), "see `tutti layers`");
    };
    switch (a.type) {
      case Argument::whole:
        if (!whole(j, a.least)) wrong(shape_of(a));
        return j.get<int64_t>();
      case Argument::real:
        if (!j.is_number() || (a.most > 0 && !(j >= 0 && j < a.most)))
          wrong(a.most > 0 ? fmt::format("a number from 0 to below {}", a.most) : "a number");
        return j.get<double>();
      case Argument::flag:
        if (!j.is_boolean()) wrong("true or false");
        return j.get<bool>();
      case Argument::text:
        if (!j.is_string() || std::ranges::find(a.choices, j.get<std::string>()) == a.choices.end())
          wrong(alternatives(a.choices));
        return j.get<std::string>();
      case Argument::sizes: {
        if (!j.is_array() || j.empty() || j.size() > 8 ||
            !std::ranges::all_of(j, [&](auto& n) { return whole(n, a.least); }))
          wrong("a list of 1 to 8 integers");
        return j.get<Shape>();
      }
      case Argument::layers:
      case Argument::branches: break;
    }
    std::string at = fmt::format("{}.{}", place, a.name);
    bool branches = a.type == Argument::branches;
    if (j.is_array() ? j.empty() : branches) wrong("a list of at least one branch or layer");
    return list(j.is_array() ? j : json::array({j}), at, last);
  }

  const std::string& file_;
  DataSizes sizes_;
  int64_t tokens_ = 0;
  int64_t layers_ = 0;  ///< number of layers so far, including repetitions
};

}  // namespace

Stack read_stack(const json& layers, const std::string& file, const DataSizes& sizes) {
  Reader r(file, sizes);
  if (!layers.is_array() || layers.empty())
    r.fail("layers", fmt::format("{}, expected a list of at least one layer", Reader::told(layers)),
           "\"layers\": [\"Flatten\", {\"Linear\": {\"out_features\": 10}}]");
  nn::Layer all = nn::Sequential(r.list(layers, "layers", true));
  return {all, r.tokens()};
}

}  // namespace tutti
