// The options of a trainer as records, used by the command line, run files, checkpoints and Python.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "train/run/trainer.h"

namespace tutti {

/// One option of a trainer. Its record is in trainer_option.cpp.
struct TUTTI_API TrainerOption {
  /// Sets fields from the option's text. `total_steps`: of the run, for schedules; -1 if not known yet, and then
  /// schedules are only checked. Throws Error(invalid).
  using Parser = void (*)(TrainerOptions& options, const std::string& text, int64_t total_steps);
  using Field = std::variant<bool TrainerOptions::*, int TrainerOptions::*, int64_t TrainerOptions::*,
                             uint64_t TrainerOptions::*, double TrainerOptions::*, std::string TrainerOptions::*>;
  enum class Scope {
    run,       ///< every command with a model takes it, and checkpoints store it
    training,  ///< the same, without effect if nothing is trained
    machine,   ///< every command with a model takes it; it does not change results, so checkpoints do not store it
    train,     ///< only `tutti train` takes it, and checkpoints do not store it
    library,   ///< C++ and Python only
  };

  std::string_view name;   ///< "clip-norm": `--clip-norm`, and `clip_norm` in Python
  std::string_view group;  ///< heading in help texts
  Field field = {};        ///< null if there is a parser
  Parser parse = nullptr;  ///< of an option that is a text
  std::string doc;
  Scope scope = Scope::run;
  /// Numbers are in [low, below), or equal to `unset`.
  double low = -std::numeric_limits<double>::infinity(), below = std::numeric_limits<double>::infinity();
  double unset = std::numeric_limits<double>::quiet_NaN();  ///< the number that means "chosen by the trainer"
  std::string text = {};                                    ///< default of an option with a parser
  /// A check of the text or number beyond its range: throws Error(invalid).
  void (*check)(const TrainerOptions&) = nullptr;
  std::string_view python = {};  ///< the name in Python, if it is another one

  /// Throws Error(invalid) for a number x outside of the range.
  void expect(double x) const;
  /// The option's value as a number; NaN for a switch or a text.
  double number(const TrainerOptions& options) const;
};

/// All options, in the order of help texts.
TUTTI_API std::span<const TrainerOption> trainer_options();

/// Texts of the options with a parser, by name ("clip-norm").
using OptionTexts = std::map<std::string, std::string, std::less<>>;
/// The default texts.
TUTTI_API OptionTexts default_texts();
/// Parses texts into `options`, in the order of the records. Throws Error(invalid), also for an option without effect.
TUTTI_API void parse_texts(TrainerOptions& options, const OptionTexts& texts, int64_t total_steps = -1);

}  // namespace tutti
