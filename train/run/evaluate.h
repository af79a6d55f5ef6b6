// Evaluation, prediction and sampling with a model on a device.
#pragma once
#include "train/run/device_model.h"

namespace tutti {

/// Samples per run of evaluation and prediction: no more than the set has, unless the task takes one batch size only.
int64_t evaluation_batch(const TrainerOptions& options, const Task& task, const data::Source& set);
/// The names of the metrics that evaluate() reports of a task with those: "rmse" and "r2" in place of "mse".
TUTTI_API std::vector<std::string> reported_metrics(std::vector<std::string> of_task);
/// See Trainer::evaluate.
EvalResult evaluate(DeviceModel& model, const data::Source& set);
/// See Trainer::predict.
HostTensor predict(DeviceModel& model, const data::Source& set);
/// See Trainer::explain.
HostTensor explain(DeviceModel& model, const data::Source& set);
/// See Trainer::sample.
HostTensor sample(DeviceModel& model, const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed);

}  // namespace tutti
