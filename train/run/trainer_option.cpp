#include "train/run/trainer_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/augment.h"
#include "data/transform.h"
#include "nn/mixup.h"
#include "train/run/plan.h"
#include "train/run/shares.h"

namespace tutti {
namespace {

std::string augment_doc() {
  std::vector<std::string> all;
  for (const data::Transform* t : data::all_transforms()) all.push_back(t->doc);
  return fmt::format("Augmentation of training images, in order, for example \"crop:4,flip\": {}; none",
                     fmt::join(all, ", "));
}

void check_reduce(const TrainerOptions& o) {
  if (o.reduce != "fast" && o.reduce != "ordered")
    throw invalid_option("reduce", o.reduce, "unknown", "use fast or ordered");
}

/// What needs all parameters on one rank.
void check_shard_all(const TrainerOptions& o) {
  const std::string instead = "leave it out, or " + option_text("shard", "optimizer");
  const std::string with = "does not work with " + option_text("shard", o.shard);
  if (o.ema > 0) throw invalid_option("ema", o.ema, with, instead);
  if (o.norms_every > 0) throw invalid_option("norms", o.norms_every, with, instead);
  if (o.fallback == Fallback::cpu) throw invalid_option("fallback", "cpu", with, instead);
  if (o.local_batches || o.local_evaluation) throw invalid_option("batches", "local", with, instead);
}

void check_collectives(const TrainerOptions& o) {
  if (o.collectives == "auto") return;
  if (o.collectives != "host" && o.collectives != "device")
    throw invalid_option("collectives", o.collectives, "unknown", "use auto, host or device");
  if (ranks_of(o) == 1)
    throw invalid_option("collectives", o.collectives, "there is only one rank",
                         "start several: mpiexec -n 2 tutti train …");
}

void check_shard(const TrainerOptions& o) {
  const std::string given = option_text("shard", o.shard);
  if (o.shard != "none" && o.shard != "optimizer" && o.shard != "all")
    throw invalid_option("shard", o.shard, "unknown", "use none, optimizer or all");
  if (o.shard != "none" && ranks_of(o) == 1)
    throw invalid(given + ": there is only one rank, which keeps " +
                      (o.shard == "all" ? "all" : "the whole optimizer") + " state",
                  "start several: mpiexec -n 2 tutti train …");
  if (o.shard != "none" && o.update)
    throw invalid((o.mixed ? "the ranks' devices differ, so each rank updates some of the parameters" : given) +
                      ": an update of one's own may need all parameters",
                  o.mixed ? "use equal devices, or an optimizer of Tutti's" : option_text("shard", "none"));
  if (o.shard == "all") check_shard_all(o);
  if (o.mixed && o.reduce == "ordered")
    throw invalid_option(
        "reduce", o.reduce, "the ranks' devices differ, and round differently",
        "use equal devices, " + option_text("numerics", "exact") + ", or " + option_text("reduce", "fast"));
}

std::vector<TrainerOption> data_records() {
  using T = TrainerOptions;
  using enum OptionScope;
  return {
      {.name = "batch", .group = "Data", .field = &T::batch, .doc = "Batch size", .low = 1, .example = "64"},
      {.name = "accumulate",
       .group = "Data",
       .field = &T::accumulate,
       .doc = "Gradient accumulation: split each batch, or each rank's share of it, into N equal parts and update the "
              "weights once",
       .scope = training,
       .low = 1},
      {.name = "augment",
       .group = "Data",
       .field = &T::augment,
       .doc = augment_doc(),
       .scope = training,
       .check = [](const T& o) { data::Augment{o.augment}; }},
      {.name = "mixup",
       .group = "Data",
       .field = &T::mixup,
       .doc = "Mixup for classifiers: train on weighted sums of two images and of their losses, with weights from "
              "Beta(ALPHA, ALPHA), for example 0.2 (0: off)",
       .scope = training,
       .check = [](const T& o) { nn::Mixup::check(o.mixup); }},
      {.name = "balance",
       .group = "Data",
       .field = &T::balance,
       .doc = "Class weights for unbalanced classes: a sample counts in inverse proportion to the size of its class",
       .scope = training},
      {.name = "keep-last",
       .group = "Data",
       .field = &T::keep_last,
       .doc = "Also train on the last, smaller batch of an epoch",
       .scope = training},
      {.name = "workers",
       .group = "Data",
       .field = &T::workers,
       .doc = "Threads that load data from the host (0: the training thread; default: half of the cores, at most 8, "
              "for images:DIR, else 0)",
       .scope = machine,
       .low = 0,
       .below = 257,  // each is a thread that reads a part of every batch
       .unset = -1},
      {.name = "prefetch",
       .group = "Data",
       .field = &T::prefetch,
       .doc = "Batches to load ahead (0: two per thread)",
       .scope = machine,
       .low = 0,
       .below = 65537},
      {.name = "eval-batch",
       .group = "Data",
       .field = &T::eval_batch,
       .doc = "Batch size of evaluation and prediction",
       .scope = library,
       .low = 1},
      {.name = "resident-limit",
       .group = "Data",
       .field = &T::resident_limit,
       .doc = "Size in bytes above which a data set stays on the host and is sent to the device batch by batch",
       .scope = library},
  };
}

std::vector<TrainerOption> training_records() {
  using T = TrainerOptions;
  using enum OptionScope;
  return {
      {.name = "seed",
       .group = "Training",
       .field = &T::seed,
       .doc = "Seed of the initial weights, dropout and the sample order"},
      {.name = "reduce",
       .group = "Training",
       .field = &T::reduce,
       .doc = "Sum of the gradients of parts and ranks: fast, or ordered, so that N ranks with A parts each "
              "(accumulate) give the same bits as one with N x A",
       .scope = training,
       .check = check_reduce},
      {.name = "shard",
       .group = "Training",
       .field = &T::shard,
       .doc = "What ranks (mpiexec) share instead of keeping a copy each: none; optimizer: each rank keeps the "
              "optimizer state of some parameters, updates them and sends them to the others; all: it also keeps large "
              "parameters and their gradients for all, which get them while they compute",
       .scope = machine,
       .check = check_shard},
      {.name = "collectives",
       .group = "Training",
       .field = &T::collectives,
       .doc =
           "Where ranks (mpiexec) add up gradients: device: among their GPUs, by NCCL; host: in host memory, by MPI; "
           "auto: among the GPUs if each rank has one and NCCL is there",
       .scope = once,
       .check = check_collectives},
      {.name = "shares",
       .group = "Training",
       .field = &T::shares,
       .doc =
           "Samples of a batch for each rank (mpiexec): equal; speed: in proportion to the speed measured before the "
           "first step; or a list, such as 48,16 (default: as in the checkpoint, else equal)",
       .scope = once,
       .check = check_shares},
      {.name = "clip-norm",
       .group = "Training",
       .field = &T::clip_norm,
       .doc = "Clip the global norm of the gradients to this value (0: off)",
       .scope = training,
       .low = 0},
      {.name = "clip-value",
       .group = "Training",
       .field = &T::clip_value,
       .doc = "Clip every element of the gradients to this magnitude (0: off)",
       .scope = training,
       .low = 0},
      {.name = "ema",
       .group = "Training",
       .field = &T::ema,
       .doc = "Decay of an exponential moving average of the weights, which evaluation uses (0: off)",
       .low = 0,
       .below = 1},
      {.name = "norms",
       .group = "Training",
       .field = &T::norms_every,
       .doc = "Measure the norm of every parameter and of its gradient every that many steps (0: off); log-dir has "
              "them",
       .scope = once,
       .low = 0,
       .python = "norms_every"},
      {.name = "nan-check",
       .group = "Training",
       .field = &T::nan_check,
       .doc = "When a loss or a weight is NaN or infinite, name the node that produced it and the ranges of its "
              "inputs. Costs up to 5 % of the time and a copy of the state in host memory; some steps run again",
       .scope = train},
      {.name = "nan-losses",
       .group = "Training",
       .field = &T::nan_losses,
       .doc = "Continue when a loss is NaN or infinite, as in PyTorch; the run ends only if a parameter becomes NaN or "
              "infinite",
       .scope = library},
  };
}

void set_recompute(TrainerOptions& o, const std::string& text, int64_t) {
  auto blocks = text == "all" ? all_blocks : parse_number<int64_t>(text);
  if (!blocks || *blocks < 0)
    throw invalid_option("recompute", text, "must be a number of blocks or all", "use an integer >= 0, or all");
  o.recompute = *blocks;
}

double number_of(std::string_view option, const std::string& text) {
  auto x = parse_number<double>(text);
  if (!x || !std::isfinite(*x)) throw invalid_option(option, text, "is not a finite number");
  return *x;
}

/// The adapters of an option that `lora` must precede.
nn::Lora& adapters_of(TrainerOptions& o, std::string_view option, const std::string& text) {
  if (!o.lora)
    throw invalid_option(option, text, fmt::format("has no effect without {}", option_text("lora")),
                         "enable adapters: " + option_text("lora", int64_t{8}));
  return *o.lora;
}

void set_lora(TrainerOptions& o, const std::string& text, int64_t) {
  auto rank = parse_number<int64_t>(text);
  if (!rank || *rank < 0) throw invalid_option("lora", text, "is not a rank", "use an integer >= 0 (0: off)");
  o.lora.reset();
  if (*rank > 0) o.lora = nn::Lora{.rank = *rank, .alpha = 2 * static_cast<double>(*rank)};
}

std::vector<TrainerOption> adapter_records() {
  using T = TrainerOptions;
  using enum OptionScope;
  return {
      {.name = "lora",
       .group = "Training",
       .parse = set_lora,
       .doc = "Rank of LoRA adapters, which are trained instead of the weights (0: off)",
       .text = "0"},
      {.name = "lora-alpha",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             double alpha = number_of("lora-alpha", text);
             if (alpha == 0) return;  // the default, however it is written
             adapters_of(o, "lora-alpha", text).alpha = alpha;
             o.lora->check();
           },
       .doc = "LoRA alpha; the scale is alpha / rank (0: twice the rank)",
       .text = "0"},
      {.name = "lora-dropout",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             double p = number_of("lora-dropout", text);
             if (p == 0) return;
             adapters_of(o, "lora-dropout", text).dropout = p;
             o.lora->check();
           },
       .doc = "Dropout probability of the adapters' inputs, in [0, 1)",
       .text = "0"},
      {.name = "lora-targets",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             adapters_of(o, "lora-targets", text).targets = split(text, ',');
             o.lora->check();
           },
       .doc = "Linear modules with LoRA adapters: names or patterns separated by commas",
       .text = fmt::format("{}", fmt::join(nn::Lora{}.targets, ","))},
      {.name = "quantize",
       .group = "Training",
       .parse = [](T& o, const std::string& text,
                   int64_t) { o.frozen = text.empty() ? nn::WeightFormat::compute : parse_quantize(text); },
       .doc = "keep weights that are not trained quantized: int8 or int4, in blocks of 32; file, as a GGUF file has "
              "them"},
  };
}

std::vector<TrainerOption> update_records() {
  using T = TrainerOptions;
  using enum OptionScope;
  return {
      {.name = "schedule",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t total_steps) {
             o.plateau = parse_plateau(text);
             Schedule parsed = parse_schedule(text, total_steps >= 0 ? total_steps : int64_t{1} << 30);
             if (total_steps >= 0) o.schedule = parsed;
           },
       .doc = "Learning rate schedule: constant, step:EVERY[:GAMMA], multi_step:A,B[:GAMMA], exponential:GAMMA, "
              "cosine[:LOW[:RESTARTS]], linear, one_cycle[:RISE], each optionally after warmup:STEPS+; "
              "plateau[:FACTOR[:PATIENCE]] follows the test loss",
       .scope = training,
       .text = "constant",
       .example = "cosine"},
      {.name = "no-decay",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             for (const std::string& pattern : split(text, ','))
               o.groups.push_back({.pattern = pattern, .decay = false});
           },
       .doc = "Parameters without weight decay: patterns separated by commas, for example \"*.bias\"",
       .scope = training},
      {.name = "freeze",
       .group = "Training",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             for (const std::string& pattern : split(text, ','))
               o.groups.push_back({.pattern = pattern, .frozen = true});
           },
       .doc = "Parameters that are not trained: patterns separated by commas",
       .scope = training},
      {.name = "recompute",
       .group = "Training",
       .parse = set_recompute,
       .doc = "Activation checkpointing: all, or the number of blocks, from the first, whose activations the backward "
              "pass recomputes instead of storing them",
       .scope = training,
       .text = "0"},
      {.name = "precision",
       .group = "Training",
       .parse = [](T& o, const std::string& text, int64_t) { o.precision = parse_precision(text); },
       .doc = "f32, tf32 (NVIDIA GPUs), bf16 or f16 (mixed precision with f32 weights; f16 with dynamic loss scaling), "
              "or f64 (reference)",
       .text = "f32",
       .example = "bf16"},
      {.name = "numerics",
       .group = "Training",
       .parse = [](T& o, const std::string& text, int64_t) { o.exact = parse_numerics(text) == TUTTI_EXACT; },
       .doc = "fast, or exact: the same bits on every device (f32, slower)",
       .text = "fast"},
      {.name = "loss-scale",
       .group = "Training",
       .parse = [](T& o, const std::string& text, int64_t) { o.loss_scaling.initial = number_of("loss-scale", text); },
       .doc = "Initial loss scale of f16",
       .scope = library,
       .text = fmt::format("{}", LossScaling{}.initial)},
      {.name = "normalise",
       .group = "Data",
       .parse = [](T& o, const std::string& text, int64_t) { o.normalise = nn::parse_normalise(text); },
       .doc = "Normalize images to mean 0 and standard deviation 1 in the model's first step: none, imagenet, cifar10, "
              "mnist, data (measured on the training set; command line only), or MEAN:STD (each a number, or one per "
              "channel separated by commas; for pixels from 0 to 1)",
       .text = "none"},
  };
}

std::vector<TrainerOption> device_records() {
  using T = TrainerOptions;
  using enum OptionScope;
  return {
      {.name = "fallback",
       .group = "Device",
       .parse = [](T& o, const std::string& text, int64_t) { o.fallback = parse_fallback(text); },
       .doc = "cpu: run nodes that the device does not support on the CPU; none: they are an error",
       .scope = place,
       .text = "none"},
      {.name = "threads",
       .group = "Device",
       .parse =
           [](T& o, const std::string& text, int64_t) {
             if (parse_threads(text) > 0) o.device_options["threads"] = text;
           },
       .doc = "CPU threads (0: chosen by the plugin)",
       .scope = machine,
       .text = "0"},
  };
}

}  // namespace

std::span<const TrainerOption> trainer_options() {
  static const auto& all = *new std::vector<TrainerOption>([] {  // other threads' messages may need it at exit
    std::vector<TrainerOption> joined = data_records();
    for (auto records : {training_records, optimizer_records, update_records, adapter_records, device_records})
      std::ranges::move(records(), std::back_inserter(joined));
    return joined;
  }());
  return all;
}

int parse_threads(const std::string& text) {
  auto threads = parse_number<int>(text);
  if (!threads || *threads < 0)
    throw invalid_option(
        "threads", text,
        fmt::format("must be a whole number, at least 0 and at most {}", std::numeric_limits<int>::max()));
  return *threads;
}

OptionTexts default_texts() {
  OptionTexts texts;
  for (const TrainerOption& option : trainer_options())
    if (option.parse) texts.emplace(option.name, option.text);
  return texts;
}

void parse_texts(TrainerOptions& options, const OptionTexts& texts, int64_t total_steps) {
  for (const TrainerOption& option : trainer_options())
    if (auto it = texts.find(option.name); it != texts.end() && option.parse && it->second != option.text)
      option.parse(options, it->second, total_steps);
}

void expect_ordered(const TrainerOptions& o) {
  const int64_t parts = parts_of(o), ranks = ranks_of(o);
  if (o.reduce != "ordered" || (parts > 1 && std::has_single_bit(static_cast<uint64_t>(parts)))) return;
  throw invalid_option(
      "reduce", o.reduce,
      fmt::format("{} rank{} with {} part{} of the batch each are {} in all; 2, 4, 8 or another power of 2 is needed",
                  ranks, ranks > 1 ? "s" : "", o.accumulate, o.accumulate > 1 ? "s" : "", parts),
      fmt::format("another number of ranks or of parts ({}), or {}", option_text("accumulate"),
                  option_text("reduce", "fast")));
}

void check(const TrainerOptions& o) {
  check(trainer_options(), o);
  if (double scale = o.loss_scaling.initial; !(scale >= smallest_loss_scale && scale <= 0x1p100))
    throw invalid(fmt::format("the initial loss scale is {}, must be from 2^-24 to 2^100", scale));
  if (o.ema > 0 && o.frozen != nn::WeightFormat::master && o.frozen != nn::WeightFormat::compute)
    throw invalid("quantized weights and an average of the weights (ema) cannot be combined",
                  "omit one of the two options");
  part_size(o.batch, parts_of(o), ranks_of(o));
  if (o.nan_check && ranks_of(o) > 1)
    throw invalid_option("nan-check", "", "is supported only without other ranks", "omit it, or run without mpiexec");
  if (!o.update) check(o.optimizer);
}

}  // namespace tutti
