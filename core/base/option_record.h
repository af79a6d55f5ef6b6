// An option as a record: the command line, run files, checkpoints, Python and help texts take it from there.
#pragma once
#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/base/option_text.h"

namespace tutti {

/// Which commands take an option, and whether checkpoints store it.
enum class OptionScope {
  run,       ///< every command with a model takes it, and checkpoints store it
  training,  ///< the same, without effect if nothing is trained
  machine,   ///< every command with a model takes it; checkpoints do not store it, because it does not change results
  place,     ///< the same, but run files have it; a resumed run does not take it from its checkpoint
  train,     ///< only `tutti train` takes it, and checkpoints store it
  once,      ///< only `tutti train` takes it, and checkpoints do not store it
  library,   ///< C++ and Python only
};

/// How a value is written, where its type does not say that.
enum class OptionForm {
  plain,
  number,  ///< a text that is a finite number, or "" if it is not given
  flag,    ///< a text that is "true", or "" if the switch is off
  bytes,   ///< a number of bytes; the command line takes units: 1.5GiB
};

/// A value as text: "" for a switch that is off.
inline std::string value_text(const std::string& value) { return value; }
inline std::string value_text(double value) { return decimal(value); }
inline std::string value_text(bool value) { return value ? "true" : ""; }
template <std::integral V>
std::string value_text(V value) {
  return std::to_string(value);
}

/// One option that sets a field of T, or several by a parser.
template <class T>
struct OptionRecord {
  /// Sets fields from the option's text. `total_steps`: of the run, for schedules; -1 if not known yet, and then
  /// schedules are only checked. Throws Error(invalid).
  using Parser = std::function<void(T& settings, const std::string& text, int64_t total_steps)>;
  using Field = std::variant<bool T::*, int T::*, int64_t T::*, uint64_t T::*, double T::*, std::string T::*>;

  std::string_view name;   ///< "clip-norm": `--clip-norm`, and `clip_norm` in Python
  std::string_view group;  ///< heading in help texts
  Field field;             ///< null if there is a parser
  Parser parse;            ///< of an option that is a text; else empty
  std::string doc;
  OptionScope scope = OptionScope::run;
  OptionForm form = OptionForm::plain;
  /// Numbers are in [low, below), or equal to `unset`.
  double low = -std::numeric_limits<double>::infinity(), below = std::numeric_limits<double>::infinity();
  double unset = std::numeric_limits<double>::quiet_NaN();  ///< the number that means "not given"
  std::string text;                                         ///< default of an option with a parser
  /// A check of the text or number beyond its range: throws Error(invalid).
  void (*check)(const T&) = nullptr;
  bool keyword = true;       ///< whether Python takes it as a keyword argument
  std::string_view python;   ///< what messages call it in Python, if it is not `name`
  std::string_view example;  ///< value in short help texts, which show only options that have one

  /// The option's value as a number; NaN for a switch or a text.
  double number(const T& settings) const {
    if (parse) return std::numeric_limits<double>::quiet_NaN();
    return std::visit(
        [&](auto member) {
          using V = std::remove_cvref_t<decltype(settings.*member)>;
          if constexpr (std::is_arithmetic_v<V> && !std::is_same_v<V, bool>)
            return static_cast<double>(settings.*member);
          return std::numeric_limits<double>::quiet_NaN();
        },
        field);
  }
  /// The value of an option without a parser as text; "" for a number that is not given.
  std::string value(const T& settings) const {
    if (number(settings) == unset) return "";
    return std::visit([&](auto member) { return value_text(settings.*member); }, field);
  }
  /// Throws Error(invalid) for a number x outside of the range.
  void expect(double x) const {
    if (x >= low && x < below) return;
    if (below == std::numeric_limits<double>::infinity())
      throw invalid_option(name, x, fmt::format("must be at least {}", low), fmt::format("{} or more", low));
    if (std::holds_alternative<double T::*>(field))
      throw invalid_option(name, x, fmt::format("must be in [{}, {})", low, below));
    throw invalid_option(name, x, fmt::format("must be at least {} and at most {}", low, below - 1));
  }
  /// The default as text.
  std::string default_text() const { return parse ? text : value(T{}); }
};

/// Throws Error(invalid) for the first option whose number is out of its range, or that its check refuses.
template <class T>
void check(std::span<const OptionRecord<T>> records, const T& settings) {
  for (const OptionRecord<T>& option : records) {
    const double x = option.number(settings);
    if (option.low > -std::numeric_limits<double>::infinity() && x != option.unset) option.expect(x);
    if (option.check) option.check(settings);
  }
}

}  // namespace tutti
