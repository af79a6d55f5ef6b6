#include "summary.h"

namespace tutti::python {

nb::tuple summary_of(const ModelSummary& summary) {
  nb::list layers;
  for (const LayerSummary& l : summary.layers)
    layers.append(nb::make_tuple(l.path, l.ops, std::string(name(l.output.dtype)), nb::tuple(nb::cast(l.output.shape)),
                                 l.parameters, l.flops));
  return nb::make_tuple(layers, summary.batch, summary.parameters, summary.trained, summary.parameter_bytes,
                        summary.forward_flops, summary.step_flops, to_text(summary));
}

}  // namespace tutti::python
