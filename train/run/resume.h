// Checks that a checkpoint fits the run that resumes from it.
#pragma once
#include <string>

#include "data/files/checkpoint.h"
#include "train/run/trainer.h"
#include "train/step/optimizer.h"
#include "train/step/precision.h"
#include "train/step/programs.h"

namespace tutti {

/// The checkpoint's value of a state, or null if it has none. Throws Error if the type differs, or if a buffer or a
/// state of the optimizer or the loss scaling is missing.
const HostTensor* stored(const Checkpoint& checkpoint, const std::string& name, const TensorType& type, StateRole role);
/// Throws Error that names file and tensor for impossible values: a negative step, an invalid loss scale, a count
/// larger than the number of steps, a NaN.
void expect_possible(const std::string& path, const Checkpoint& checkpoint);
/// Reads seed and step from a checkpoint that passed expect_possible().
uint64_t seed_of(const Checkpoint& checkpoint);
int64_t step_of(const Checkpoint& checkpoint);
/// Throws Error naming the first parameter or buffer that is missing in the checkpoint, differs, or is not in the
/// model.
void expect_same_model(const Checkpoint& checkpoint, const ModelSignature& declared);
/// The parameters and buffers of a checkpoint that evaluation uses, in the dtypes of training: averaged ones if the run
/// keeps them, adapters merged into their weights, quantised ones dequantised. Throws as expect_possible() and
/// expect_same_model() do.
TUTTI_API HostTensors evaluation_weights(const std::string& checkpoint, const Task& task, const TrainerOptions& trained,
                                         const InputLayout& form);
/// Throws Error that lists all tensors of `from` that are unknown to the model, of another shape, or missing (the
/// adapters may all be missing), or that contain NaN.
/// `initialized`: the path of a layer that may be missing.
void expect_weights_of(const std::string& from, const HostTensors& weights, const ModelSignature& declared,
                       const std::string& initialized = {});
/// Drops the weights of the last layer if it differs from the model's only in its number of outputs, or is missing, and
/// all else fits: the layer is then initialized. Returns its path, "" if nothing was dropped.
std::string drop_other_head(HostTensors& weights, const ModelSignature& declared);
/// Throws Error that names both sides if the optimizer or the precision differs. A checkpoint without a precision was
/// trained in f32.
void expect_same_training(const Checkpoint& checkpoint, const Optimizer& optimizer, Precision precision);
/// Throws Error that names both sides if the checkpoint is of a run with reduce = ordered, whose steps had another
/// number of parts than those of this run, over all `ranks`.
void expect_same_order(const Checkpoint& checkpoint, const std::string& reduce, int64_t parts, int64_t ranks);
/// Throws Error that names both sides if the model was trained with another normalization of images.
void expect_same_images(const Checkpoint& checkpoint, const std::optional<nn::Normalise>& normalise);

/// Writes the metadata that the functions here compare: optimizer, precision, …, and plugin and number of threads
/// ("onednn 2") where their number may change bits.
void describe_training(Checkpoint& checkpoint, const Device& device, const TrainerOptions& options);
/// A warning if a checkpoint's metadata name another number of threads of the same plugin; else "".
std::string threads_warning(const std::map<std::string, std::string>& metadata, const Device& device,
                            const TrainerOptions& options);

/// Whether the model keeps matrices quantized. Throws Error(invalid) if none is, though `frozen` asks for the file's.
bool is_quantized(const ModelSignature& declared, nn::WeightFormat frozen);

}  // namespace tutti
