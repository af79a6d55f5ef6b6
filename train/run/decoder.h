// Decodes with a language model on a device, token by token: the compiled programs and the position in the sequence.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "train/run/device_model.h"

namespace tutti {

class Decoder {
 public:
  explicit Decoder(DeviceModel& model) : model_(model) {}
  /// See Trainer::next_token.
  HostTensor next_token(std::span<const int32_t> tokens, int64_t position, int64_t context);

 private:
  HostTensor decode(std::vector<int32_t> part, int64_t size, int64_t position);
  DeviceModel& model_;
  std::map<int64_t, std::unique_ptr<CompiledGraph>> programs_;  // by tokens per run
  int64_t context_ = 0, done_ = 0;                              // done_: tokens processed so far
  int64_t vocabulary_ = 0;
};

}  // namespace tutti
