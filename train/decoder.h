// A language model on a device, token by token: the programs that go on with a sequence, and where it is.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "data/source.h"
#include "train/programs.h"
#include "train/runner.h"

namespace tutti {

class Decoder {
 public:
  /// What it asks of the trainer.
  struct Access {
    Runner& runner;
    const Programs& programs;
    std::function<void(const data::Source&)> bind;                        ///< learns the parameters from such data
    std::function<std::unique_ptr<CompiledGraph>(const Graph&)> prepare;  ///< and gives parameters their first values
  };
  explicit Decoder(Access access) : access_(std::move(access)) {}
  /// See Trainer::next_token.
  HostTensor next_token(std::span<const int32_t> tokens, int64_t position, int64_t context);

 private:
  HostTensor decode(std::vector<int32_t> part, int64_t size, int64_t position);
  Access access_;
  std::map<int64_t, std::unique_ptr<CompiledGraph>> programs_;  // by tokens at a time
  int64_t context_ = 0, done_ = 0;                              // tokens of the sequence so far
  int64_t vocabulary_ = 0;
};

}  // namespace tutti
