// Steps of models with channels-last images on a GPU (or the software device) whose library declines all convolutions
// once they are tried: portable kernels run in its place. The rest of the step is channels-last.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda/driver.h"
#include "core/runtime/selector.h"
#include "graph/lower/compile.h"
#include "sdk/rendered/rendered.h"
#include "tests/cuda/layout_library.h"
#include "tests/support/device_run.h"
#include "tests/support/model_step.h"
#include "tests/support/require.h"

namespace tutti::cuda {
namespace {

class CudaLayout : public testing::TestWithParam<const char*> {
 protected:
  std::shared_ptr<const Libraries> libraries;
  std::vector<Found> found;
  void SetUp() override {
    try {
      libraries = open_libraries();
      found = find_devices(*libraries);
    } catch (const Error& e) {
      return test::skip_without("cuda", e.what());
    }
    if (found.empty()) test::skip_without("cuda", "no device");
  }
};

Legalizer legalizer_of(sdk::Session& session) {
  return Legalizer(
      [&](const Graph& asked) {
        Lowered lowered(asked);
        sdk::Program program = sdk::Program::parse(lowered.program());
        std::vector<uint8_t> accepted(program.nodes.size());
        std::vector<Verdict> verdicts(program.nodes.size());
        session.check(program, accepted, [&](uint32_t k, const std::string& why) { verdicts[k].reason = why; });
        for (size_t k = 0; k < accepted.size(); ++k) verdicts[k].accepted = accepted[k] != 0;
        return verdicts;
      },
      "cuda");
}

std::vector<std::byte> bytes_of(const Tensor& t) {
  std::vector<std::byte> bytes(num_bytes(t.type));
  store_tensor(t, bytes.data());
  return bytes;
}

/// The states after one step.
std::map<std::string, Tensor> run(sdk::Session& session, const Lowered& lowered, const Graph& g,
                                  const std::map<std::string, Tensor>& inputs) {
  auto executable = session.compile(sdk::Program::parse(lowered.program()), {});
  executable->prepare();
  for (const State& s : g.states())
    if (s.before != no_id) {
      std::vector<std::byte> bytes = bytes_of(inputs.at(s.name));
      session.write(s.name, bytes.data(), bytes.size());
    }
  std::vector<void*> feeds(lowered.feeds().size());
  executable->stage(feeds);
  for (size_t k = 0; k < feeds.size(); ++k) {
    std::vector<std::byte> bytes = bytes_of(inputs.at(lowered.feeds()[k]));
    std::memcpy(feeds[k], bytes.data(), bytes.size());
  }
  session.wait(executable->run(), ~0ull);
  std::map<std::string, Tensor> states;
  for (const State& s : g.states()) {
    const TensorType& type = g.info(s.after).type;
    std::vector<std::byte> bytes(num_bytes(type));
    session.read(s.name, bytes.data(), bytes.size());
    states.emplace(s.name, tensor_from(type, bytes.data()));
  }
  return states;
}

TEST_P(CudaLayout, StepsAreThoseOfAnotherDevice) {
  Graph g = test::training_step(GetParam(), "tiny", 2, {.optimizer = Sgd{.lr = 0.1, .momentum = 0.9}});
  auto driver = std::make_unique<Driver>(libraries, found.at(0), [] {
    auto library = std::make_unique<ChannelsLastLibrary>();
    library->declines_when_run = true;
    return library;
  });
  auto session = sdk::make_rendered_session(std::move(driver), sdk::Host());
  Legalizer legalizer = legalizer_of(*session);
  Lowered lowered = compile_for_device(g, legalizer);
  sdk::Program program = sdk::Program::parse(lowered.program());
  ASSERT_TRUE(std::ranges::any_of(program.nodes, [](const sdk::Node& n) { return n.op == "conv2d_nhwc"; }))
      << "the step is channels-last";
  std::map<std::string, Tensor> inputs = test::inputs_of(g), got = run(*session, lowered, g, inputs),
                                expected = test::run_on(select_device("onednn:0"), g, inputs);
  for (const auto& [name, t] : expected) EXPECT_LE(test::relative_error(got.at(name), t), 5e-4) << name;
}

INSTANTIATE_TEST_SUITE_P(Models, CudaLayout, testing::Values("cnn", "resnet18", "mobilenet_v2", "unet"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tutti::cuda
