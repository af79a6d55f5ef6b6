// tutti._core: the engine's public C++ API for the Python package, thin. What reads well in Python is written there.
#include "module.h"

NB_MODULE(_core, m) {
  using namespace tutti::python;
  nb::set_leak_warnings(false);  // modules keep their classes until the process ends
  m.attr("version") = TUTTI_VERSION;
  bind_errors(m);
  bind_devices(m);
  bind_graph(m);
  bind_functions(m);
  bind_nn(m);
  bind_train(m);
}
