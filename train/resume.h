// Whether a checkpoint fits the run that goes on from it.
#pragma once
#include <string>

#include "data/files/checkpoint.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/programs.h"

namespace tutti {

/// The checkpoint's value of a state of that type, or null when it holds none. Throws Error where the type differs, and
/// where a buffer, the optimizer's or the loss scaling's state is missing: those come whole.
const HostTensor* stored(const Checkpoint& checkpoint, const std::string& name, const TensorType& type, StateRole role);
/// Throws Error naming file and tensor where a number is one that no run can have come to: a step below 0, a loss scale
/// that is none, a count beyond the steps, a NaN.
void expect_possible(const std::string& path, const Checkpoint& checkpoint);
/// Of a checkpoint that expect_possible() passed.
uint64_t seed_of(const Checkpoint& checkpoint);
int64_t step_of(const Checkpoint& checkpoint);
/// Throws Error naming the first parameter or buffer that is missing in the checkpoint, differs, or is not in the
/// model.
void expect_same_model(const Checkpoint& checkpoint, const ModelSignature& declared);
/// Throws Error that lists every tensor of `from` that the model lacks, that it has in another shape, or that is
/// missing (all adapters may be), or that holds NaN.
void expect_weights_of(const std::string& from, const HostTensors& weights, const ModelSignature& declared);
/// Throws Error naming both sides where the optimizer or the precision differs. A checkpoint that does not name its
/// precision was trained in f32.
void expect_same_training(const Checkpoint& checkpoint, const Optimizer& optimizer, Precision precision);
/// Throws Error naming both sides where the model was trained on images that were normalised otherwise.
void expect_same_images(const Checkpoint& checkpoint, const std::optional<nn::Normalise>& normalise);

}  // namespace tutti
