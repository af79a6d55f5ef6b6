// Computes a kernel's loop rounds from the line "rounds" of its text.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/base/status.h"
#include "kernels/codegen/kernel.h"

namespace tutti::codegen {
namespace {

/// Evaluates "PIECE / LOCALS + 2 * (K + 1)"; words are numbers of the kernel.
class Rounds {
 public:
  explicit Rounds(const Kernel& k) : kernel_(k), text_(k.rounds) {}
  double value() {
    double x = sum();
    if (at_ != text_.size()) wrong();
    return x;
  }

 private:
  [[noreturn]] void wrong() const {
    throw Error(Code::internal, fmt::format("{}: kernel {}: rounds {}: invalid character {}", kernel_.file,
                                            kernel_.name, text_, at_ + 1));
  }
  bool take(char c) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  double sum() {
    double x = product();
    for (;;)
      if (take('+'))
        x += product();
      else if (take('-'))
        x -= product();
      else
        return x;
  }
  double product() {
    double x = factor();
    for (;;)
      if (take('*'))
        x *= factor();
      else if (take('/'))
        x = std::ceil(x / factor());
      else
        return x;
  }
  double factor() {
    if (take('(')) {
      double x = sum();
      if (!take(')')) wrong();
      return x;
    }
    size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    if (at_ == from) wrong();
    return named(text_.substr(from, at_ - from));
  }
  double named(const std::string& word) const {
    if (word == "LOCALS") return double{1} * kernel_.local[0] * kernel_.local[1] * kernel_.local[2];
    std::string text = word;
    for (const Number& n : kernel_.numbers)
      if (n.name == word && n.value) return static_cast<double>(*n.value);
    for (auto& [name, value] : kernel_.values)
      if (name == word) text = value;
    char* end = nullptr;
    double x = std::strtod(text.c_str(), &end);
    if (text.empty() || *end)
      throw Error(Code::internal, fmt::format("{}: kernel {}: rounds {}: {} is not a number but '{}'", kernel_.file,
                                              kernel_.name, text_, word, text));
    return x;
  }

  const Kernel& kernel_;
  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

int64_t longest_part(const Target& t, int64_t each, int64_t unit) {
  constexpr int64_t others = 640, most_units = 0x40000000;  // others: upper bound of a kernel's rounds besides the sum
  int64_t units = std::max<int64_t>(1, (static_cast<int64_t>(t.max_rounds) - others) / each);
  return std::min(units, most_units / unit) * unit;
}

double rounds_of(const Kernel& kernel) { return kernel.rounds.empty() ? 0 : Rounds(kernel).value(); }

}  // namespace tutti::codegen
