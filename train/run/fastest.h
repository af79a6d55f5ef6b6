// The fastest device for a model: a few timed training steps on every usable device, kept by model, machine and
// version.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/run/trainer.h"

namespace tutti {

/// A model's training step on one device.
struct TUTTI_API DeviceSpeed {
  std::string device, name;
  double step_ms = 0;     ///< median of three steps after two others; 0: not timed
  double compile_ms = 0;  ///< of its programs
  std::string problem;    ///< why it was not timed
};

/// A model's training step on the devices of this machine.
struct TUTTI_API ModelSpeeds {
  std::string model, date;           ///< what the measurement calls the model; UTC
  std::vector<DeviceSpeed> devices;  ///< fastest first, those without a time last
  bool kept = false;                 ///< of an earlier measurement
  /// Null if no device was timed.
  const DeviceSpeed* fastest() const;
  const DeviceSpeed* of(const std::string& device) const;
};

/// The training step that is timed.
struct TUTTI_API TimedModel {
  const Task& task;
  TrainerOptions options;  ///< those that describe the step; equal steps have the same times
  const data::Source& set;
  std::string name;  ///< for tables
  /// Changes the options for a device, for example to fit its memory.
  std::function<void(TrainerOptions&, const Device&)> adapt = {};
  std::function<void(Trainer&)> start = {};       ///< sets initial weights, where a random initialization cannot
  std::function<void(const Device&)> watch = {};  ///< called before each device
  /// Whether to leave out the devices that were not timed yet; asked between steps.
  std::function<bool()> stop = {};
};

/// Times the step on every usable device and keeps the result in the cache folder, unless stopped. The reference is
/// left out if there are others. A device that cannot run the step has a problem. Throws Error(invalid) for ranks.
TUTTI_API ModelSpeeds measure_speeds(const TimedModel& model);
/// The kept times of the same step on the same devices in the same versions; none if there are none.
TUTTI_API std::optional<ModelSpeeds> kept_speeds(const TimedModel& model);
/// All kept times of this machine's devices, newest first.
TUTTI_API std::vector<ModelSpeeds> all_kept_speeds();

/// The fastest device, with `reason` set, by kept times, else by new ones. Throws Error(declined) with each device's
/// problem if none runs the step. `speeds`: what it was chosen by, if not null.
TUTTI_API Device select_fastest(const TimedModel& model, ModelSpeeds* speeds = nullptr);
/// What kept times say against a device: "; vulkan:0 was faster: 1.2 ms a step, 3.4 ms here"; "" if nothing.
TUTTI_API std::string faster_than(const Device& device, const TimedModel& model);
/// A table with a line per device.
TUTTI_API std::string to_text(const ModelSpeeds& speeds);

}  // namespace tutti
