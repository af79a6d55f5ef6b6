#include "train/run/fastest.h"

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/cpus.h"
#include "core/base/hash.h"
#include "core/base/option_text.h"
#include "core/os/machine.h"
#include "core/runtime/blob_cache.h"
#include "graph/print.h"
#include "train/run/reference.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr int warm_steps = 2, timed_steps = 3;
constexpr size_t most_kept = 200;
constexpr const char* cache_key = "device speeds 1";

std::string digest(const std::string& text) {
  return fmt::format("{:016x}{:016x}", fnv1a(text.data(), text.size()),
                     fnv1a(text.data(), text.size(), other_fnv_start));
}

/// The CPU and the devices with the versions of their drivers and plugins.
std::string machine_digest() {
  Registry& registry = Registry::instance();
  std::string text = fmt::format("{}\n{}\n", os::processor_name(), default_threads());
  std::vector<std::string> devices;
  for (const Ranked& r : rank_devices(registry))
    devices.push_back(
        fmt::format("{}\n{}\n{}\n{}\n", r.device.id, r.device.name, r.device.driver, r.device.unusable.empty()));
  std::ranges::sort(devices);  // not in the order that the user prefers
  text += fmt::format("{}", fmt::join(devices, ""));
  for (const PluginReport& p : registry.plugins()) text += fmt::format("{} {}\n", p.name, p.version);
  return digest(text);
}

/// The step's graph, and the options outside of it that change its time.
std::string step_digest(const TimedModel& m) {
  const TrainerOptions& o = m.options;
  Programs programs(m.task, o);
  std::string text = print(programs.training(layout_of(m.set, m.set.name, false), o.batch));
  text += fmt::format("{} {} {} {} {} {} {}\n", o.accumulate, o.exact, static_cast<int>(o.fallback), o.augment,
                      o.workers, o.prefetch, o.device_options);
  return digest(text);
}

json read_kept() {
  std::vector<std::byte> bytes = BlobCache(BlobCache::default_folder()).get(cache_key);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  json all = json::parse(text, text + bytes.size(), nullptr, false);
  return all.is_array() ? all : json::array();
}

ModelSpeeds speeds_of(const json& entry) {
  ModelSpeeds s{.model = entry.at("model"), .date = entry.at("date"), .devices = {}, .kept = true};
  for (const json& d : entry.at("devices"))
    s.devices.push_back({.device = d.at("device"),
                         .name = d.at("name"),
                         .step_ms = d.at("step_ms"),
                         .compile_ms = d.at("compile_ms"),
                         .problem = d.at("problem")});
  return s;
}

void keep(const ModelSpeeds& s, const std::string& step) {
  const std::string machine = machine_digest();
  json entry = {{"machine", machine}, {"step", step}, {"model", s.model}, {"date", s.date}, {"devices", json::array()}};
  for (const DeviceSpeed& d : s.devices)
    entry["devices"].push_back({{"device", d.device},
                                {"name", d.name},
                                {"step_ms", d.step_ms},
                                {"compile_ms", d.compile_ms},
                                {"problem", d.problem}});
  json all = json::array({entry});
  for (json& old : read_kept())
    if (all.size() < most_kept && (old.value("machine", "") != machine || old.value("step", "") != step))
      all.push_back(std::move(old));
  const std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
  BlobCache(BlobCache::default_folder()).put(cache_key, text.data(), text.size());
}

/// Trains until the trainer has done this many steps.
void train_to(Trainer& trainer, const data::Source& set, int64_t steps) {
  while (trainer.steps() < steps) trainer.train(set, steps - trainer.steps());
}

DeviceSpeed time_on(const Device& device, const TimedModel& m) try {
  using Clock = std::chrono::steady_clock;
  DeviceSpeed speed{.device = device.id, .name = device.name, .problem = {}};
  TrainerOptions options = m.options;
  options.profiler = nullptr;
  options.nan_check = false;
  options.nan_losses = true;  // a loss that is not finite is the run's error, not the device's
  if (m.adapt) m.adapt(options, device);
  Trainer trainer(device, m.task, options);
  if (m.start) m.start(trainer);
  const int64_t before = trainer.steps();
  auto stopped = [&] { return m.stop && m.stop(); };
  std::vector<double> ms;
  for (int step = 1; step <= warm_steps + timed_steps && !stopped(); ++step) {
    const auto start = Clock::now();
    train_to(trainer, m.set, before + step);
    if (step > warm_steps) ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  if (stopped()) {
    speed.problem = "stopped";
    return speed;
  }
  std::ranges::sort(ms);
  speed.step_ms = ms[timed_steps / 2];
  speed.compile_ms = trainer.compile_ms();
  return speed;
} catch (const Error& e) {
  return {.device = device.id, .name = device.name, .problem = e.what()};
}

/// The usable devices, best first.
std::vector<Device> candidates(std::vector<DeviceSpeed>& left_out) {
  Registry& registry = Registry::instance();
  std::vector<Device> all;
  for (const Ranked& r : rank_devices(registry)) {
    const Device& d = r.device;
    std::string why = d.unusable.empty() ? registry.try_open(d) : d.unusable;
    if (why.empty())
      all.push_back(d);
    else
      left_out.push_back({.device = d.id, .name = d.name, .problem = "cannot be used: " + why});
  }
  if (std::ranges::all_of(all, is_reference)) return all;
  for (const Device& d : all)
    if (is_reference(d))
      left_out.push_back({.device = d.id, .name = d.name, .problem = "left out: computes in float64, for comparisons"});
  std::erase_if(all, is_reference);
  return all;
}

const DeviceSpeed* first_timed(const ModelSpeeds& s) {
  auto at = std::ranges::find_if(s.devices, [](const DeviceSpeed& d) { return d.step_ms > 0; });
  return at == s.devices.end() ? nullptr : &*at;
}

}  // namespace

const DeviceSpeed* ModelSpeeds::fastest() const { return first_timed(*this); }

const DeviceSpeed* ModelSpeeds::of(const std::string& device) const {
  auto at = std::ranges::find(devices, device, &DeviceSpeed::device);
  return at == devices.end() ? nullptr : &*at;
}

ModelSpeeds measure_speeds(const TimedModel& m) {
  if (m.options.world)
    throw invalid_option("device", "fastest", "times a step on the devices of one process, and this run has ranks",
                         "name a device, or one for each rank");
  ModelSpeeds s{.model = m.name, .date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))), .devices = {}};
  std::vector<DeviceSpeed> left_out;
  auto stopped = [&] { return m.stop && m.stop(); };
  for (const Device& d : candidates(left_out)) {
    if (!stopped() && m.watch) m.watch(d);
    s.devices.push_back(stopped() ? DeviceSpeed{.device = d.id, .name = d.name, .problem = "stopped"} : time_on(d, m));
  }
  s.devices.insert(s.devices.end(), left_out.begin(), left_out.end());
  std::ranges::stable_sort(s.devices, {}, [](const DeviceSpeed& d) { return std::pair(d.step_ms <= 0, d.step_ms); });
  if (!stopped() && s.fastest()) keep(s, step_digest(m));
  return s;
}

std::optional<ModelSpeeds> kept_speeds(const TimedModel& m) try {
  const json all = read_kept();
  if (all.empty()) return {};
  const std::string machine = machine_digest(), step = step_digest(m);
  for (const json& entry : all)
    if (entry.value("machine", "") == machine && entry.value("step", "") == step) return speeds_of(entry);
  return {};
} catch (const json::exception&) {  // a damaged entry
  return {};
}

std::vector<ModelSpeeds> all_kept_speeds() {
  const std::string machine = machine_digest();
  std::vector<ModelSpeeds> all;
  for (const json& entry : read_kept()) try {
      if (entry.value("machine", "") == machine) all.push_back(speeds_of(entry));
    } catch (const json::exception&) {  // a damaged entry
    }
  return all;
}

Device select_fastest(const TimedModel& m, ModelSpeeds* speeds) {
  std::optional<ModelSpeeds> kept = m.options.world ? std::nullopt : kept_speeds(m);
  ModelSpeeds s = kept ? std::move(*kept) : measure_speeds(m);
  if (speeds) *speeds = s;
  const DeviceSpeed* best = s.fastest();
  if (s.devices.empty()) throw invalid("no plugin offers a device", "`tutti doctor` says why");
  if (!best) {
    std::string text = "no device runs this model's training step:";
    for (const DeviceSpeed& d : s.devices) text += fmt::format("\n  {}: {}", d.device, d.problem);
    throw OptionError(Error(Code::declined, text,
                            fmt::format("use a smaller model or batch, or {}: nodes that a device declines run on the "
                                        "CPU",
                                        option_text("fallback", "cpu"))),
                      "device");
  }
  Device device = select_device(best->device);
  const auto timed = std::ranges::count_if(s.devices, [](const DeviceSpeed& d) { return d.step_ms > 0; });
  device.reason = fmt::format("the fastest of {} for this model, {:.3g} ms a step{}", timed, best->step_ms,
                              s.kept ? ", timed on " + s.date : "");
  return device;
}

std::string faster_than(const Device& device, const TimedModel& m) try {
  std::optional<ModelSpeeds> s = kept_speeds(m);
  const DeviceSpeed* best = s ? s->fastest() : nullptr;
  const DeviceSpeed* here = s ? s->of(device.id) : nullptr;
  constexpr double noise = 0.95;  // of three steps
  if (!best || !here || here->step_ms <= 0 || best->step_ms > noise * here->step_ms) return "";
  return fmt::format("; {} was faster for this model: {:.3g} ms a step, {:.3g} ms here", best->device, best->step_ms,
                     here->step_ms);
} catch (const Error&) {  // the run itself says what is wrong with the model
  return "";
}

std::string to_text(const ModelSpeeds& s) {
  std::string text = fmt::format("{}, {}\n{:<14} {:>10} {:>12}\n", s.model, s.kept ? "timed on " + s.date : s.date,
                                 "device", "ms a step", "ms to build");
  for (const DeviceSpeed& d : s.devices)
    text += d.step_ms > 0 ? fmt::format("{:<14} {:>10.3f} {:>12.0f}  {}\n", d.device, d.step_ms, d.compile_ms, d.name)
                          : fmt::format("{:<14} {:>10} {:>12}  {}\n", d.device, "-", "-",
                                        d.problem.substr(0, d.problem.find('\n')));
  return text;
}

}  // namespace tutti
