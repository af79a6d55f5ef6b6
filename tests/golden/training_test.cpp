// 20 steps of an MLP and a small CNN under every optimizer against PyTorch: the losses, every parameter and the
// optimizer's state.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops.h"
#include "tests/golden/golden_data.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double tolerance = 1e-9;

/// The models of make_golden.py (see `forward` there); parameters are states.
Value forward(const std::string& model, std::map<std::string, Value>& p, Value x) {
  auto linear = [&](Value in, const std::string& name) {
    return matmul(in, p.at(name + ".weight"), false, true) + p.at(name + ".bias");
  };
  if (model == "cnn") {
    for (std::string name : {"conv1", "conv2"}) {
      Value bias = reshape(p.at(name + ".bias"), {1, -1, 1, 1});
      x = max_pool2d(relu(conv2d(x, p.at(name + ".weight"), {.padding = {1, 1}}) + bias));
    }
    x = reshape(x, {x.shape()[0], -1});
  }
  return linear(relu(linear(x, "fc1")), "fc2");
}

struct Update {
  std::string state;
  Value after;
};

/// One step of the optimizer for parameter `name`; its state is named NAME.m and NAME.v.
std::vector<Update> update(const std::string& optimizer, const json& options, const std::string& name, Value p, Value g,
                           Graph& graph) {
  auto option = [&](const char* key) { return options.at(key)[0].get<double>(); };
  auto scalar = [&](const char* key) { return graph.state(key, {DType::f64, {}}); };
  Value lr = scalar("lr"), m = graph.state(name + ".m", p.type());
  if (optimizer == "sgd_momentum") {
    Values r = sgd_momentum(p, g, m, lr, option("momentum"), option("nesterov") != 0, option("weight_decay"));
    return {{name, r[0]}, {name + ".m", r[1]}};
  }
  Value v = graph.state(name + ".v", p.type()), c1 = scalar("c1"), c2 = scalar("c2");
  Values r = optimizer == "adam" ? adam(p, g, m, v, lr, c1, c2)
                                 : adamw(p, g, m, v, lr, c1, c2, 0.9, 0.999, 1e-8, option("weight_decay"));
  return {{name, r[0]}, {name + ".m", r[1]}, {name + ".v", r[2]}};
}

class Training : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(Training, twenty_steps_match_pytorch) {
  auto [model, optimizer] = GetParam();
  json file = golden::read(fmt::format("training_{}.json", model));
  const json &run = file.at("runs").at(optimizer), &images = file.at("images"), &labels = file.at("labels");

  Graph g;
  std::map<std::string, Value> p;
  std::map<std::string, Tensor> at;  // feeds and states
  Values wrt;
  std::vector<std::string> names;
  for (const auto& [name, t] : file.at("parameters").items()) {
    at[name] = golden::to_tensor(t);
    p[name] = g.state(name, at[name].type);
    wrt.push_back(p[name]);
    names.push_back(name);
  }
  Value x = g.feed("images", golden::to_tensor(images[0]).type),
        y = g.feed("labels", golden::to_tensor(labels[0]).type);
  Value loss = cross_entropy(forward(model, p, x), y);
  Values d = gradients(loss, wrt), outputs = {loss};
  std::vector<Update> updates;
  for (size_t k = 0; k < names.size(); ++k)
    for (const Update& u : update(optimizer, run.at("options"), names[k], wrt[k], d[k], g)) {
      updates.push_back(u);
      outputs.push_back(u.after);
      at.try_emplace(u.state, Tensor(u.after.type()));
    }

  ASSERT_EQ(images.size(), 20u);
  for (const char* name : {"lr", "c1", "c2"}) at[name] = Tensor({DType::f64, {}});
  at["lr"].at[0] = run.at("options").at("lr")[0].get<double>();
  for (size_t step = 0; step < images.size(); ++step) {
    at["images"] = golden::to_tensor(images[step]);
    at["labels"] = golden::to_tensor(labels[step]);
    at["c1"].at[0] = 1 - std::pow(0.9, static_cast<double>(step + 1));
    at["c2"].at[0] = 1 - std::pow(0.999, static_cast<double>(step + 1));
    std::vector<Tensor> out = evaluate(g, at, outputs);
    double want = run.at("losses")[step].get<double>();
    ASSERT_NEAR(out[0].at[0], want, tolerance * want) << "loss of step " << step + 1;
    for (size_t k = 0; k < updates.size(); ++k) at[updates[k].state] = std::move(out[k + 1]);
  }
  size_t compared = 0;
  for (const std::string& name : names)
    for (const auto& [part, want] : run.at("after").at(name).items()) {
      std::string state = part == "p" ? name : name + "." + part;
      EXPECT_EQ(golden::difference(at.at(state), golden::to_tensor(want), tolerance), "") << state;
      ++compared;
    }
  EXPECT_EQ(compared, updates.size());
}

INSTANTIATE_TEST_SUITE_P(Runs, Training,
                         testing::Combine(testing::Values("mlp", "cnn"),
                                          testing::Values("adam", "adamw", "sgd_momentum")),
                         [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace tutti
