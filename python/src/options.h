// Options with records as keyword arguments.
#pragma once
#include <span>

#include "core/base/option_record.h"
#include "module.h"

namespace tutti::python {

/// The keyword argument of an option; "" if Python does not take it as one.
template <class T>
std::string keyword_of(const OptionRecord<T>& option) {
  if (!option.keyword) return "";
  return keyword(option.python.empty() ? option.name : option.python);
}

inline std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::str(value)); }

/// Sets the fields of the options among the keyword arguments `given`, and `texts` of those with a parser. Throws
/// Error(invalid) for a value of another type.
template <class T, class Texts>
void set_options(T& settings, Texts& texts, std::span<const OptionRecord<T>> records, const nb::dict& given) {
  for (const OptionRecord<T>& option : records) {
    const std::string key = keyword_of(option);
    if (key.empty() || !given.contains(key.c_str())) continue;
    nb::handle value = given[key.c_str()];
    if (option.parse) {
      texts.emplace(option.name, text_of(value));
      continue;
    }
    std::visit(
        [&](auto member) {
          using V = std::remove_cvref_t<decltype(settings.*member)>;
          if constexpr (std::is_same_v<V, std::string>)
            settings.*member = text_of(value);
          else if (!nb::try_cast(value, settings.*member))
            throw invalid_option(option.name, text_of(value),
                                 std::is_same_v<V, bool>     ? "expected True or False"
                                 : std::is_same_v<V, double> ? "expected a number"
                                                             : "expected a whole number");
        },
        option.field);
  }
}

/// (keyword or "", default, doc, name in commands or "") of each option.
template <class T>
nb::list rows_of(std::span<const OptionRecord<T>> records) {
  nb::list all;
  for (const OptionRecord<T>& option : records)
    all.append(nb::make_tuple(
        keyword_of(option),
        option.parse ? nb::cast(option.text)
                     : std::visit([](auto member) -> nb::object { return nb::cast(T{}.*member); }, option.field),
        option.doc, std::string(option.scope == OptionScope::library ? "" : option.name)));
  return all;
}

}  // namespace tutti::python
