#include "verify/conformance/check.h"

namespace tutti::conformance {

void Findings::add(const std::string& text) { texts_.push_back(text); }

void Findings::add(const Findings& other) { texts_.insert(texts_.end(), other.texts_.begin(), other.texts_.end()); }

std::string Findings::text() const {
  constexpr size_t most = 10;
  std::string all;
  for (size_t i = 0; i < texts_.size() && i < most; ++i) all += (i ? "; " : "") + texts_[i];
  if (texts_.size() > most) all += "; and " + std::to_string(texts_.size() - most) + " more";
  return all;
}

Checks all_checks() {
  Checks all;
  for (Checks (*make)() : {negotiation_checks, open_checks, argument_checks, program_checks, growth_checks, run_checks,
                           memory_checks, thread_checks, device_checks, product_checks, op_checks, model_checks}) {
    Checks some = make();
    all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  return all;
}

}  // namespace tutti::conformance
