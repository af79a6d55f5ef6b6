#include "cli/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/number.h"
#include "core/base/text.h"
#include "nn/nets.h"
#include "train/checkpoint.h"

namespace tutti::cli {
namespace {

std::vector<int64_t> parse_layers(const std::string& text) {
  std::vector<int64_t> sizes;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    int64_t n = 0;
    if (whole<int64_t>(part).empty()) std::from_chars(part.data(), part.data() + part.size(), n);
    if (n < 1)
      throw invalid(fmt::format("--layers {}: '{}' is not a positive number", text, part), "--layers 784,512,256,10");
    sizes.push_back(n);
  }
  if (sizes.size() < 2)
    throw invalid(fmt::format("--layers {}: at least input and output are needed", text), "--layers 784,512,256,10");
  return sizes;
}

nn::Scheme parse_init(const std::string& name) {
  static const std::map<std::string, nn::Scheme> known = {{"torch", nn::Scheme::torch_default},
                                                          {"kaiming_uniform", nn::Scheme::kaiming_uniform},
                                                          {"kaiming_normal", nn::Scheme::kaiming_normal},
                                                          {"xavier_uniform", nn::Scheme::xavier_uniform},
                                                          {"xavier_normal", nn::Scheme::xavier_normal}};
  auto it = known.find(name);
  if (it == known.end())
    throw invalid(fmt::format("--init {}: unknown", name),
                  "use one of: torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal");
  return it->second;
}

nn::NetOptions net_options(const RunOptions& o) {
  return {.activation = o.activation, .dropout = o.dropout, .init = parse_init(o.init)};
}

nn::Sequential make_mlp(const RunOptions& o, const TensorType& sample, int64_t classes) {
  std::vector<int64_t> sizes = parse_layers(o.layers);
  if (sizes[0] != num_elements(sample.shape))
    throw invalid(fmt::format("--layers {}: the first layer takes {} numbers, a sample of --data {} has {} ({})",
                              o.layers, sizes[0], o.data, num_elements(sample.shape), to_string(sample)),
                  fmt::format("--layers {}{}", num_elements(sample.shape), o.layers.substr(o.layers.find(','))));
  if (sizes.back() < classes)
    throw invalid(fmt::format("--layers {}: the last layer gives {} classes, --data {} has {}", o.layers, sizes.back(),
                              o.data, classes),
                  fmt::format("--layers {},{}", o.layers.substr(0, o.layers.rfind(',')), classes));
  return nn::mlp({sizes.begin() + 1, sizes.end()}, net_options(o));
}

nn::Sequential make_cnn(const RunOptions& o, const TensorType& sample, int64_t classes) {
  if (sample.shape.size() != 3 || sample.shape[1] < 4 || sample.shape[2] < 4)
    throw invalid(
        fmt::format("cnn takes images [C, H, W] of at least 4x4, --data {} has {}", o.data, to_string(sample)),
        "use mlp");
  return nn::small_cnn(std::max<int64_t>(10, classes), net_options(o));
}

}  // namespace

void RunOptions::add_to(CLI::App& sub) {
  auto keep = [&](CLI::Option* o, const char* group) {
    o->group(group);
    options_.emplace(o->get_lnames().empty() ? "model" : o->get_lnames()[0], o);
    return o;
  };
  const char *m = "Model", *d = "Data", *t = "Training";
  keep(sub.add_option("model", model, "mlp, or cnn (conv3x3(32)-relu-pool2, conv3x3(64)-relu-pool2, fc128-relu-fc10)"),
       m);
  keep(sub.add_option("--layers", layers, "Sizes of the mlp, input first"), m);
  keep(sub.add_option("--activation", activation,
                      "relu, leaky_relu, elu, gelu, gelu_tanh, sigmoid, tanh, silu, softplus"),
       m);
  keep(sub.add_option("--dropout", dropout, "Probability after each hidden layer, in [0, 1)")->check(real), m);
  keep(sub.add_option("--init", init, "torch, kaiming_uniform, kaiming_normal, xavier_uniform, xavier_normal"), m);
  keep(sub.add_option("--data", data, "fashion-mnist, idx:DIR, or synthetic:SHAPE:CLASSES (synthetic:1x28x28:10)"), d);
  keep(sub.add_option("--batch", batch, "Samples per step")->check(whole<int64_t>), d);
  keep(sub.add_option("--seed", seed, "Of initial weights, dropout and the order of the samples")
           ->check(whole<uint64_t>),
       t);
  keep(sub.add_option("--epochs", epochs, "Passes over the training set, in all")->check(whole<int64_t>), t);
  keep(sub.add_option("--steps", steps, "Stop after this many steps in all (0: by epochs)")->check(whole<int64_t>), t);
  keep(sub.add_option("--optimizer", optimizer, "sgd, adam or adamw"), t);
  keep(sub.add_option("--lr", lr, "Learning rate (0: 1e-3, for sgd 1e-2)")->check(real), t);
  keep(sub.add_option("--momentum", momentum, "Of sgd")->check(real), t);
  keep(sub.add_flag("--nesterov", nesterov, "Nesterov momentum for sgd"), t);
  keep(
      sub.add_option("--weight-decay", weight_decay, "-1: the optimizer's default (adamw 0.01, others 0)")->check(real),
      t);
  keep(sub.add_option("--beta1", beta1, "Of adam and adamw")->check(real), t);
  keep(sub.add_option("--beta2", beta2, "Of adam and adamw")->check(real), t);
  keep(sub.add_option("--epsilon", epsilon, "Of adam and adamw")->check(real), t);
  keep(sub.add_option("--precision", precision,
                      "f32 (strict), tf32 (NVIDIA GPUs), or mixed with f32 weights: bf16, f16 (dynamic loss scaling)"),
       t);
  sub.add_option("--device", device,
                 "auto, an id (vulkan:1), a plugin (opencl), a kind (cpu), or a pattern (\"NVIDIA*\")")
      ->group("Device");
  sub.add_option("--fallback", fallback, "cpu: nodes that the device declines run on the CPU (else they are an error)")
      ->check([](const std::string& text) { return text == "cpu" ? "" : fmt::format("'{}' is not cpu", text); })
      ->group("Device");
  sub.add_option("--threads", threads, "CPU threads (0: the plugin's choice)")->check(whole<int>)->group("Device");
}

void RunOptions::leave_out(CLI::App& sub, const std::string& option) {
  options_.erase(option);
  sub.remove_option(sub.get_option("--" + option));
}

std::map<std::string, std::string> RunOptions::remembered() const {
  std::map<std::string, std::string> all;
  for (const auto& [key, option] : options_)
    all[key] =
        option->empty() ? option->get_default_str() : fmt::format("{}", fmt::join(option->reduced_results(), ","));
  return all;
}

void RunOptions::recall(const std::string& path) {
  Checkpoint c = read_checkpoint(path);
  auto it = c.metadata.find("run");
  if (it == c.metadata.end()) {
    if (model.empty())
      throw invalid(fmt::format("{}: does not say what run it comes from", path), "name the model and its options");
    return;
  }
  auto run = nlohmann::json::parse(it->second, nullptr, false);
  if (!run.is_object()) throw invalid(fmt::format("{}: the metadata 'run' is not a JSON object", path));
  for (const auto& [key, option] : options_) {
    if (!option->empty() || !run.contains(key) || !run[key].is_string() || run[key].get<std::string>().empty())
      continue;
    if (key == "steps" && named("epochs")) continue;  // whoever names epochs means them
    try {
      option->add_result(run[key].get<std::string>());
      option->run_callback();
      data_recalled_ = data_recalled_ || key == "data";
    } catch (const CLI::Error& e) {
      throw invalid(fmt::format("{}: the metadata 'run' is damaged: {}", path, e.what()), "use another checkpoint");
    }
    recalled_ = path;
  }
}

/// Says where options come from that nobody typed.
void RunOptions::rethrow(const Error& e) const {
  if (recalled_.empty()) throw;
  throw Error(e.code, fmt::format("{} (with the options remembered in {})", e.what(), recalled_), e.remedy);
}

data::Split RunOptions::read_data() const try {
  constexpr uint64_t most = uint64_t{1} << 30;  // a small file must not fill the memory
  if (uint64_t bytes = data_recalled_ ? data::made_up_bytes(data) : 0; bytes > most)
    throw invalid(fmt::format("--data {} takes {} of memory", data, bytes_text(bytes)),
                  fmt::format("if that is meant, name it: --data {}", data));
  return data::parse_data(data);
} catch (const Error& e) {
  rethrow(e);
}

nn::Layer RunOptions::make_model(const TensorType& sample, int64_t classes) const try {
  validate_each();
  if (model == "mlp") return make_mlp(*this, sample, classes);
  return make_cnn(*this, sample, classes);
} catch (const Error& e) {
  rethrow(e);
}

void RunOptions::validate() const try { validate_each(); } catch (const Error& e) {
  rethrow(e);
}

void RunOptions::validate_each() const {
  auto at_least = [](const char* option, double x, double low) {
    if (!(x >= low)) throw invalid(fmt::format("{} {}: must be at least {}", option, x, low));
  };
  at_least("--batch", static_cast<double>(batch), 1);
  at_least("--epochs", static_cast<double>(epochs), 1);
  at_least("--steps", static_cast<double>(steps), 0);
  at_least("--threads", threads, 0);
  at_least("--lr", lr, 0);
  at_least("--momentum", momentum, 0);
  at_least("--epsilon", epsilon, 0);
  if (weight_decay != -1) at_least("--weight-decay", weight_decay, 0);
  if (!(dropout >= 0 && dropout < 1)) throw invalid(fmt::format("--dropout {}: must be in [0, 1)", dropout));
  make_optimizer();
  parse_precision(precision);
  if (model != "mlp" && model != "cnn")
    throw invalid(model.empty() ? "no model named" : fmt::format("unknown model '{}'", model), "use mlp or cnn");
  nn::activation(activation);
  parse_init(init);
}

Optimizer RunOptions::make_optimizer() const {
  double rate = lr > 0 ? lr : optimizer == "sgd" ? 1e-2 : 1e-3;
  double decay = weight_decay != -1 ? weight_decay : optimizer == "adamw" ? 1e-2 : 0;
  if (optimizer != "sgd" && (momentum != 0 || nesterov))
    throw invalid(fmt::format("--momentum and --nesterov are sgd's, not {}'s", optimizer));
  if (optimizer == "sgd") {
    if (nesterov && momentum == 0) throw invalid("--nesterov needs --momentum", "--momentum 0.9");
    return Sgd{.lr = rate, .momentum = momentum, .nesterov = nesterov, .weight_decay = decay};
  }
  for (double beta : {beta1, beta2})
    if (!(beta >= 0 && beta < 1)) throw invalid(fmt::format("--beta1 {} --beta2 {}: must be in [0, 1)", beta1, beta2));
  if (optimizer == "adam")
    return Adam{.lr = rate, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = decay};
  if (optimizer == "adamw")
    return AdamW{.lr = rate, .beta1 = beta1, .beta2 = beta2, .epsilon = epsilon, .weight_decay = decay};
  throw invalid(fmt::format("unknown optimizer '{}'", optimizer), "use sgd, adam or adamw");
}

TrainerOptions RunOptions::trainer_options(const data::Dataset& set) const {
  TrainerOptions t{
      .model = make_model(set.sample_type(), set.classes), .optimizer = make_optimizer(), .batch = batch, .seed = seed};
  t.precision = parse_precision(precision);
  if (threads > 0) t.device_options["threads"] = std::to_string(threads);
  if (fallback == "cpu") t.fallback = Fallback::cpu;
  return t;
}

void RunOptions::tell_fallback(const Trainer& trainer, nlohmann::ordered_json& document) const {
  if (fallback.empty()) return;
  FallbackReport report = trainer.fallback();
  std::string where = fmt::format("{}", fmt::join(report.devices, ", "));
  document["fallback"] = {{"device", where.empty() ? nlohmann::json() : nlohmann::json(where)},
                          {"nodes", report.nodes},
                          {"bytes_per_step", report.bytes_per_step}};
}

std::string RunOptions::tell_fallback(const Trainer& trainer) const {
  if (fallback.empty()) return "";
  FallbackReport report = trainer.fallback();
  if (report.nodes.empty()) return "fallback   none was needed: the device runs every node\n";
  return fmt::format("fallback   {} kinds of nodes run on {}, {} bytes copied per step\n", report.nodes.size(),
                     fmt::join(report.devices, ", "), report.bytes_per_step);
}

}  // namespace tutti::cli
