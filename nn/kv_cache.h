// What a model remembers while it generates a sequence token by token.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti::nn {

/// The states of one sequence of at most context() tokens. A run adds tokens [N, T]: those from position() on.
class TUTTI_API KvCache {
 public:
  /// `position`: number of earlier tokens; `last`: the token of the run whose scores are returned; both i32 scalars.
  KvCache(Value position, Value last, int64_t context) : position_(position), last_(last), context_(context) {}
  Value position() const { return position_; }
  Value last() const { return last_; }
  int64_t context() const { return context_; }
  /// Positions of t tokens in the sequence, i32 [t].
  Value positions(int64_t t) const;
  /// The row of the last token of x [N, T, width]: [N, 1, width].
  Value last_token(Value x) const;
  /// The state "generate.NAME", initially zero, such as the keys of the earlier tokens, and its value for the next run.
  Value get(const std::string& name, TensorType type) const;
  void put(const std::string& name, Value value) const;

 private:
  Value position_, last_;
  int64_t context_;
};

}  // namespace tutti::nn
