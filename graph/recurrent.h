// Shared by the recurrent ops: iteration over the steps of sequences, with lengths.
#pragma once
#include "graph/op.h"

namespace tutti {

/// Checks the gates of T steps z [T, N, gates * H], the state h0 [N, H], the weights w_hh [gates * H, H] and optional
/// lengths i32 [N]. Throws Error if they do not match; `b_hh` may be null.
void check_recurrence(const TensorType& z, const TensorType& h0, const TensorType& w_hh, int64_t gates,
                      std::span<const TensorType> lengths);

/// The steps of a sequence in the order of iteration.
class Steps {
 public:
  Steps(int64_t count, bool reverse, std::span<const Value> lengths)
      : count_(count), reverse_(reverse), lengths_(lengths.empty() ? Value{} : lengths[0]) {}

  int64_t count() const { return count_; }
  /// The position in the sequence of step k.
  int64_t at(int64_t k) const { return reverse_ ? count_ - 1 - k : k; }
  /// x [T, N, n] at step k: [N, n].
  Value of(Value x, int64_t k) const;
  /// `now` for sequences that include step k, `else_` for shorter ones.
  Value live(int64_t k, Value now, Value else_) const;
  /// Concatenates per-step values, in the order of iteration, to one tensor [T, ...].
  Value joined(Values steps) const;
  /// The state before every step, from the states after each step [T, N, H] and the initial state.
  Value before(Value after, Value first) const;

 private:
  int64_t count_;
  bool reverse_;
  Value lengths_;
};

/// Samples of a recurrence, for both directions, with and without lengths. `operands` returns the shapes for T, N and
/// H, without the lengths.
using RecurrenceOperands = std::vector<Shape>(int64_t t, int64_t n, int64_t h);
std::vector<Sample> recurrence_samples(RecurrenceOperands operands);
/// The same for its gradient, whose third operand is the gates.
std::vector<Sample> recurrence_grad_samples(RecurrenceOperands operands);

/// Part k of the gates [N, gates * size].
Value gate(Value gates, int64_t k, int64_t size);
/// Reshapes x [T, N, n] to [T * N, n].
Value rows_of(Value x);

}  // namespace tutti
