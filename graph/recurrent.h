// What the recurrent ops share: steps of a sequence and which of them count.
#pragma once
#include "graph/op.h"

namespace tutti {

/// The gates of T steps z [T, N, gates * H] with the state h0 [N, H], the weights w_hh [gates * H, H] and perhaps
/// lengths i32 [N]. Throws Error where they do not fit; `b_hh` may be null.
void check_recurrence(const TensorType& z, const TensorType& h0, const TensorType& w_hh, int64_t gates,
                      std::span<const TensorType> lengths);

/// The steps of a sequence in the order in which a direction takes them.
class Steps {
 public:
  Steps(int64_t count, bool reverse, std::span<const Value> lengths)
      : count_(count), reverse_(reverse), lengths_(lengths.empty() ? Value{} : lengths[0]) {}

  int64_t count() const { return count_; }
  /// The place in the sequence of step k.
  int64_t at(int64_t k) const { return reverse_ ? count_ - 1 - k : k; }
  /// x [T, N, n] at step k: [N, n].
  Value of(Value x, int64_t k) const;
  /// `now` for the sequences that step k belongs to, `else_` for those that ended before it.
  Value live(int64_t k, Value now, Value else_) const;
  /// Values of the steps, in their order, as one tensor [T, ...].
  Value joined(Values steps) const;
  /// The state before every step, from those after each [T, N, H] and the first one.
  Value before(Value after, Value first) const;

 private:
  int64_t count_;
  bool reverse_;
  Value lengths_;
};

/// Samples of a recurrence, whose operands for T, N and H are given without lengths; both directions, with and without
/// lengths.
using RecurrenceOperands = std::vector<Shape>(int64_t t, int64_t n, int64_t h);
std::vector<Sample> recurrence_samples(RecurrenceOperands operands);
/// The same for its gradient, whose third operand are the gates.
std::vector<Sample> recurrence_grad_samples(RecurrenceOperands operands);

/// Part k of the gates [N, gates * size].
Value gate(Value gates, int64_t k, int64_t size);
/// x [T, N, n] as rows [T * N, n].
Value rows_of(Value x);

}  // namespace tutti
