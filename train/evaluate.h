// Evaluation, prediction and sampling with a model on a device.
#pragma once
#include "train/device_model.h"

namespace tutti {

/// See Trainer::evaluate.
EvalResult evaluate(DeviceModel& model, const data::Source& set);
/// See Trainer::predict.
HostTensor predict(DeviceModel& model, const data::Source& set);
/// See Trainer::sample.
HostTensor sample(DeviceModel& model, const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed);

}  // namespace tutti
