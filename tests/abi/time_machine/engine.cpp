// Trains a linear classifier on one device and says, as JSON, what came out of it. Built over today's header and over
// a later one (later_header.py), which knows more of the plugin.
//
// usage: engine DEVICE
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/abi/growth.h"
#include "core/runtime/boundary.h"
#include "core/runtime/registry.h"
#include "core/runtime/selector.h"
#include "graph/ops.h"
#include "graph/autodiff/autodiff.h"
#include "graph/lower/lower.h"
#include "train/run/runner.h"

using namespace tutti;
using nlohmann::json;

namespace {

constexpr int64_t batch = 16, width = 8, classes = 4;

/// Bytes of the trained weights in hexadecimal, and the last loss.
json train(const Device& device) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {batch, width}}), labels = g.feed("labels", {DType::i32, {batch}});
  Value w = g.state("w", {DType::f32, {width, classes}}), b = g.state("b", {DType::f32, {classes}});
  Value loss = cross_entropy(matmul(x, w) + b, labels);
  Values d = gradients(loss, {w, b});
  g.set_state("w", w - 0.5 * d[0]);
  g.set_state("b", b - 0.5 * d[1]);
  g.set_state("loss", loss);

  std::vector<float> samples;
  std::vector<int32_t> classes_of;
  for (int64_t i = 0; i < batch * width; ++i) samples.push_back(static_cast<float>((i * 37 + i / width * 11) % 17) / 17);
  for (int64_t i = 0; i < batch; ++i) classes_of.push_back(static_cast<int32_t>(i % classes));
  HostTensors feeds = {{"x", host_tensor(DType::f32, {batch, width}, samples)},
                       {"labels", host_tensor(DType::i32, {batch}, classes_of)}};
  Runner runner(device);
  auto step = runner.compile(g);
  step->prepare();
  for (int i = 0; i < 40; ++i) runner.wait(step->run(feeds));
  runner.check_memory();
  std::string weights;
  for (std::byte x : runner.read("w").bytes) weights += fmt::format("{:02x}", static_cast<unsigned>(x));
  return {{"device", device.name}, {"loss", runner.read("loss").item()}, {"weights", weights}};
}

/// What `check` says of s' = s + 0.5 * a * b, changed by `change`: its code, and one verdict per node.
template <class Change>
json verdicts(const TuttiPlugin& table, const Device& device, Change&& change) {
  Graph g;
  TensorType type{DType::f32, {12}};
  Value a = g.feed("a", type), b = g.feed("b", type), s = g.state("s", type);
  g.set_state("s", s + a * b * g.full(DType::f32, 0.5));
  Lowered lowered(g, {});
  TuttiProgram program = lowered.program();
  change(program);
  TuttiSession* session = nullptr;
  TuttiError error = empty_error();
  json out = {{"open", table.open(device.index, {}, &session, &error)}};
  std::vector<uint8_t> accepted(program.nodes.count, 9);
  TuttiSink silent = {nullptr, [](void*, uint32_t, const char*) {}};
  out["check"] = table.check(session, &program, accepted.data(), silent, &error);
  out["accepted"] = accepted;
  TuttiMemory memory = {};
  memory.size = sizeof memory;
  TuttiOptions options = {};
  options.size = sizeof options;
  options.flags = 0;
  TuttiExecutable* x = nullptr;
  out["compile"] = table.compile(session, &program, &options, &x, &memory, &error);
  table.close(session);
  return out;
}

template <class T>
T& first(const TuttiArray& array) {
  return *static_cast<T*>(const_cast<void*>(array.at));
}

json extensions(const TuttiPlugin& table) {
  auto profile = find_extension<TuttiProfile>(table.extensions, TUTTI_EXT_PROFILE);
  auto native = find_extension<TuttiNative>(table.extensions, TUTTI_EXT_NATIVE);
  auto collective = find_extension<TuttiCollective>(table.extensions, TUTTI_EXT_COLLECTIVE);
  return {{"profile", profile.times != nullptr},
          {"native", native.state != nullptr},
          {"collective", collective.all_reduce != nullptr}};
}

/// One profiled run through the extension: how many kernels it names, and the codes of the calls that must fail.
json profiled(const TuttiPlugin& table, const Device& device) {
  auto profile = find_extension<TuttiProfile>(table.extensions, TUTTI_EXT_PROFILE);
  auto native = find_extension<TuttiNative>(table.extensions, TUTTI_EXT_NATIVE);
  auto collective = find_extension<TuttiCollective>(table.extensions, TUTTI_EXT_COLLECTIVE);
  if (!profile.times) return nullptr;
  Graph g;
  g.set_state("s", g.state("s", {DType::f32, {12}}) + g.full(DType::f32, 1));
  Lowered lowered(g, {});
  TuttiSession* session = nullptr;
  TuttiError error = empty_error();
  table.open(device.index, {}, &session, &error);
  TuttiMemory memory = {};
  memory.size = sizeof memory;
  TuttiOptions options = {};
  options.size = sizeof options;
  options.flags = TUTTI_OPT_PROFILE;
  TuttiExecutable* x = nullptr;
  table.compile(session, &lowered.program(), &options, &x, &memory, &error);
  table.prepare(x, &error);
  TuttiArray kernels = {};
  json out = {{"times_before_run", profile.times(x, &kernels, &error)}};
  uint64_t ticket = 0;
  table.run(x, &ticket, &error);
  out["times"] = profile.times(x, &kernels, &error);
  out["kernels"] = kernels.count;
  auto one = element_of<TuttiNodeTime>(kernels, 0);
  out["kernel"] = one.kernel;
  out["timed"] = one.nanoseconds > 0;
  if (!collective.all_reduce) {
    table.close(session);
    return out;
  }
  TuttiNativeState at = {};
  at.size = sizeof at;
  out["native"] = native.state(session, "s", &at, &error);
  uint8_t id[128];
  out["unique_id"] = collective.unique_id(id, &error);
  out["join"] = collective.join(session, id, 0, 1, &error);
  const char* states[] = {"s"};
  out["all_reduce"] = collective.all_reduce(session, states, 1, &error);
  out["leave"] = collective.leave(session, &error);
  table.close(session);
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  Device device = select_device(argc > 1 ? argv[1] : "auto");
  json out = train(device);
  const TuttiPlugin& table = Registry::instance().load(device);
  out["plain"] = verdicts(table, device, [](TuttiProgram&) {});
  out["unknown_dtype"] = verdicts(table, device, [](TuttiProgram& p) { first<TuttiValue>(p.values).dtype = 9; });
  out["unknown_flag"] = verdicts(table, device, [](TuttiProgram& p) { first<TuttiNode>(p.nodes).flags |= 2; });
  out["extensions"] = extensions(table);
  out["profiled"] = profiled(table, device);
  TuttiArray devices = {};
  TuttiError error = empty_error();
  table.devices(&devices, &error);
#ifdef TUTTI_LATER
  out["later"] = {{"call", table.later_call != nullptr},
                  {"device", element_of<TuttiDevice>(devices, device.index).later_1},
                  {"table", table.later_1}};
  if (table.later_received) {
    uint64_t received[4];
    table.later_received(nullptr, received, &error);
    out["later"]["received"] = received;
  }
#endif
  out["device_bytes"] = devices.stride;
  std::printf("%s\n", out.dump().c_str());
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
