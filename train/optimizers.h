// Written by scripts/collect.py from train/optimizers/.
#pragma once
#include <tuple>

// IWYU pragma: begin_exports
#include "train/optimizers/adadelta.h"
#include "train/optimizers/adagrad.h"
#include "train/optimizers/adam.h"
#include "train/optimizers/adamax.h"
#include "train/optimizers/adamw.h"
#include "train/optimizers/lamb.h"
#include "train/optimizers/lion.h"
#include "train/optimizers/muon.h"
#include "train/optimizers/nadam.h"
#include "train/optimizers/radam.h"
#include "train/optimizers/rmsprop.h"
#include "train/optimizers/sgd.h"
// IWYU pragma: end_exports

namespace tutti {

using BuiltInOptimizers =
    std::tuple<Adadelta, Adagrad, Adam, Adamax, AdamW, Lamb, Lion, Muon, NAdam, RAdam, RmsProp, Sgd>;

}  // namespace tutti
