#include "train/step/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <locale>
#include <numbers>
#include <sstream>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

void expect(bool good, const std::string& what, const char* expected) {
  if (!good) throw invalid(fmt::format("schedule: {} must be {}", what, expected));
}

double half_cosine(double from, double to, double share) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

/// Splits the text of a schedule into its name and arguments, separated by colons.
class Words {
 public:
  Words(const std::string& whole, const std::string& part) : whole_(whole), words_(split(part, ':')) {}
  std::string name() const { return words_.empty() ? "" : words_[0]; }
  void expect_at_most(size_t arguments) const {
    if (words_.size() > arguments + 1) fail(words_.back());
  }
  std::string text(size_t i) const {
    if (i >= words_.size())
      throw invalid_option("schedule", whole_, fmt::format("a number is missing after {}", name()), remedy());
    return words_[i];
  }
  template <class T>
  T number(const std::string& word) const {
    std::optional<T> x = parse_number<T>(word);
    if (!x || !(*x >= T{}) || !std::isfinite(static_cast<double>(*x))) fail(word);
    return *x;
  }
  template <class T>
  T number(size_t i) const {
    return number<T>(text(i));
  }
  template <class T>
  T number(size_t i, T otherwise) const {
    return i < words_.size() ? number<T>(i) : otherwise;
  }
  static const char* remedy() {
    return "use constant, step:EVERY[:GAMMA], multi_step:A,B,…[:GAMMA], exponential:GAMMA, cosine[:LOW[:RESTARTS]], "
           "linear, one_cycle[:RISE] or plateau[:FACTOR[:PATIENCE]]; all except plateau optionally after warmup:STEPS+";
  }

 private:
  [[noreturn]] void fail(const std::string& word) const {
    throw invalid_option("schedule", whole_,
                         fmt::format("invalid value '{}' for {}, expected a number >= 0", word, name()), remedy());
  }
  std::string whole_;
  std::vector<std::string> words_;
};

}  // namespace

Schedule step_schedule(int64_t every, double gamma) {
  expect(every >= 1, fmt::format("{} steps", every), "at least 1");
  return [=](int64_t step) { return std::pow(gamma, static_cast<double>(step / every)); };
}

Schedule multi_step_schedule(std::vector<int64_t> milestones, double gamma) {
  for (int64_t m : milestones) expect(m >= 0, fmt::format("milestone {}", m), "at least 0");
  return [milestones = std::move(milestones), gamma](int64_t step) {
    auto reached = std::ranges::count_if(milestones, [&](int64_t m) { return step >= m; });
    return std::pow(gamma, static_cast<double>(reached));
  };
}

Schedule exponential_schedule(double gamma) {
  return [=](int64_t step) { return std::pow(gamma, static_cast<double>(step)); };
}

Schedule cosine_schedule(int64_t total, double low, int64_t restarts) {
  expect(total >= 1, fmt::format("a run of {} steps (total)", total), "at least 1");
  expect(restarts >= 1 && restarts <= total, fmt::format("{} restarts", restarts), "from 1 to the number of steps");
  return [=](int64_t step) {
    if (step >= total) return low;
    auto length = static_cast<double>(total) / static_cast<double>(restarts);
    return half_cosine(1, low, std::fmod(static_cast<double>(step), length) / length);
  };
}

Schedule linear_schedule(int64_t total) {
  expect(total >= 1, fmt::format("a run of {} steps (total)", total), "at least 1");
  return [=](int64_t step) { return std::max(0.0, 1 - static_cast<double>(step) / static_cast<double>(total)); };
}

Schedule one_cycle_schedule(int64_t total, double rise) {
  expect(total >= 1, fmt::format("a run of {} steps (total)", total), "at least 1");
  expect(rise > 0 && rise < 1, fmt::format("rise {}", rise), "above 0 and below 1");
  constexpr double first = 1.0 / 25, last = first / 1e4;
  return [=](int64_t step) {
    double top = rise * static_cast<double>(total) - 1, end = static_cast<double>(total) - 1;
    auto at = static_cast<double>(std::min(step, total - 1));
    if (top == 0 && at == 0) return 1.0;  // the rise has one step; PyTorch divides by 0
    return at <= top ? half_cosine(first, 1, at / top) : half_cosine(1, last, (at - top) / (end - top));
  };
}

Schedule warmup_schedule(int64_t steps, Schedule after) {
  expect(steps >= 0, fmt::format("{} steps", steps), "at least 0");
  return [=, after = std::move(after)](int64_t step) {
    if (step < steps) return static_cast<double>(step + 1) / static_cast<double>(steps);
    return after ? after(step - steps) : 1.0;
  };
}

void Plateau::update(double loss) {
  if (loss < best * (1 - threshold)) {
    best = loss;
    bad = 0;
  } else if (++bad > patience) {
    scale *= factor;
    bad = 0;
  }
}

std::string Plateau::state() const { return fmt::format("{} {} {}", best, scale, bad); }

void Plateau::restore(const std::string& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  Plateau read = *this;
  if (!(in >> read.best >> read.scale >> read.bad) || read.bad < 0 || !(read.scale > 0))
    throw invalid(
        fmt::format("the checkpoint's metadata of the plateau schedule is '{}', expected a loss, a factor and a count",
                    text),
        "use another checkpoint");
  *this = read;
}

std::optional<Plateau> parse_plateau(const std::string& text) {
  Words w(text, text);
  if (w.name() != "plateau") return std::nullopt;
  w.expect_at_most(2);
  Plateau p{.factor = w.number<double>(1, 0.1)};
  p.patience = w.number<int64_t>(2, 10);
  if (!(p.factor > 0 && p.factor < 1))
    throw invalid_option("schedule", text, fmt::format("the factor is {}, must be above 0 and below 1", p.factor));
  return p;
}

Schedule parse_schedule(const std::string& text, int64_t total) {
  if (size_t plus = text.find('+'); plus != std::string::npos) {
    Words w(text, text.substr(0, plus));
    if (w.name() != "warmup")
      throw invalid_option("schedule", text, "only warmup is allowed before '+'", Words::remedy());
    w.expect_at_most(1);
    auto steps = w.number<int64_t>(1);
    int64_t rest = total >= 1 ? std::max<int64_t>(total - steps, 1) : total;
    return warmup_schedule(steps, parse_schedule(text.substr(plus + 1), rest));
  }
  Words w(text, text);
  std::string name = w.name();
  if (parse_plateau(text)) return [](int64_t) { return 1.0; };
  if (name == "constant") return w.expect_at_most(0), [](int64_t) { return 1.0; };
  if (name == "linear") return w.expect_at_most(0), linear_schedule(total);
  if (name == "warmup") return w.expect_at_most(1), warmup_schedule(w.number<int64_t>(1));
  if (name == "step") return w.expect_at_most(2), step_schedule(w.number<int64_t>(1), w.number<double>(2, 0.1));
  if (name == "exponential") return w.expect_at_most(1), exponential_schedule(w.number<double>(1));
  if (name == "one_cycle") return w.expect_at_most(1), one_cycle_schedule(total, w.number<double>(1, 0.3));
  if (name == "cosine")
    return w.expect_at_most(2), cosine_schedule(total, w.number<double>(1, 0.0), w.number<int64_t>(2, 1));
  if (name == "multi_step") {
    w.expect_at_most(2);
    std::vector<int64_t> milestones;
    for (const std::string& m : split(w.text(1), ',')) milestones.push_back(w.number<int64_t>(m));
    return multi_step_schedule(std::move(milestones), w.number<double>(2, 0.1));
  }
  throw invalid_option("schedule", text, "unknown", Words::remedy());
}

}  // namespace tutti
