// Lists devices.
#include "core/runtime/selector.h"
#include "module.h"

namespace tutti::python {

void bind_devices(nb::module_& m) {
  nb::class_<Ranked>(m, "Device", "One device of one plugin.")
      .def_prop_ro(
          "id", [](const Ranked& r) { return r.device.id; }, "\"onednn:0\": what `device=` takes.")
      .def_prop_ro("name", [](const Ranked& r) { return r.device.name; })
      .def_prop_ro("plugin", [](const Ranked& r) { return r.device.plugin; })
      .def_prop_ro("driver", [](const Ranked& r) { return r.device.driver; })
      .def_prop_ro(
          "kind", [](const Ranked& r) { return std::string(name(r.device.kind)); },
          "discrete, integrated, cpu, software or other.")
      .def_prop_ro("usable", [](const Ranked& r) { return r.device.unusable.empty(); })
      .def_prop_ro(
          "why", [](const Ranked& r) { return r.why; }, "Why it stands above the next one, or why it cannot be used.")
      .def_prop_ro(
          "memory_total", [](const Ranked& r) { return r.device.memory_total; }, "Bytes.")
      .def_prop_ro(
          "memory_free", [](const Ranked& r) { return r.device.memory_free; }, "Bytes.");
  m.def(
      "devices",
      [](const std::string& wanted) {
        WithoutGil release;
        return rank_devices(Registry::instance(), wanted);
      },
      nb::arg("wanted") = "auto");
}

}  // namespace tutti::python
