// tutti._core: thin bindings of the engine's public C++ API. Everything else is written in Python.
#include "module.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "train/run/run_option.h"
#include "train/run/trainer_option.h"

std::string tutti::python::keyword(std::string_view option) {
  std::string key(option);
  std::ranges::replace(key, '-', '_');
  return key;
}

NB_MODULE(_core, m) {
  using namespace tutti::python;
  nb::set_leak_warnings(false);  // modules keep their classes until the process ends
  m.attr("version") = TUTTI_VERSION;
  m.def("leave_interpreter", &leave_interpreter);  // for atexit
  tutti::set_option_style([](std::string_view name, std::string_view value) {
    std::string key = keyword(name);
    auto find = [&](const auto& records) {
      for (const auto& option : records)
        if (option.name == name && !option.python.empty()) key = option.python;
    };
    find(tutti::run_options());
    find(tutti::trainer_options());
    if (value.empty() || key.find('=') != std::string::npos) return key;
    bool number = tutti::parse_number<double>(std::string(value)).has_value();
    return number ? fmt::format("{}={}", key, value) : fmt::format("{}='{}'", key, value);
  });
  bind_errors(m);
  bind_devices(m);
  bind_graph(m);
  bind_functions(m);
  bind_nn(m);
  bind_train(m);
  bind_world(m);
}
