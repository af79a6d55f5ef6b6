// Trainer.fit, and what all ranks agree on before the first step.
#pragma once
#include <map>
#include <string>

#include "data/source.h"
#include "module.h"
#include "train/run/trainer.h"

namespace tutti::python {

using PyTrainer = Exclusive<Trainer>;

/// What ranks compare on the first batch of an iterable.
struct RanksCheck {
  bool due = false;           ///< whether they have not compared yet
  bool same_batches = false;  ///< whether all of them have the same batches
  std::map<std::string, std::string> options;
};

/// Prepares the training step for the set. Throws Error(invalid) listing what differs between ranks; `same_set`:
/// whether all ranks have the same one. Options are compared first: the sizes of what ranks exchange depend on them.
void agree_on(Trainer& trainer, const data::Source& set, bool same_set,
              const std::map<std::string, std::string>& options);

void bind_fit(nb::class_<PyTrainer>& trainer);

}  // namespace tutti::python
