#include "train/run/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/status.h"
#include "data/dataset.h"

namespace tutti {
namespace {

constexpr int64_t prefill = 64;  // tokens per run

}  // namespace

HostTensor Decoder::next_token(std::span<const int32_t> tokens, int64_t position, int64_t context) {
  model_.expect_whole("generate");
  auto count = static_cast<int64_t>(tokens.size());
  if (count < 1 || position < 0 || position + count > context || (position != 0 && position != done_))
    throw invalid(
        fmt::format("cannot decode {} tokens at position {}: the next position is {}, and the context has {} positions",
                    count, position, done_, context),
        "pass the tokens in order, without gaps, up to the context");
  if (context_ != context) programs_.clear();
  context_ = context;
  // Only two program sizes: shorter inputs are padded, and later tokens overwrite the padding in the cache.
  int64_t size = count == 1 ? 1 : std::min<int64_t>(prefill, context);
  HostTensor scores;
  for (int64_t first = 0; first < count; first += size) {
    int64_t valid = std::min(size, count - first);
    std::vector<int32_t> part(tokens.begin() + first, tokens.begin() + first + valid);
    scores = decode(std::move(part), size, position + first);
  }
  done_ = position + count;
  return scores;
}

HostTensor Decoder::decode(std::vector<int32_t> part, int64_t size, int64_t position) {
  auto last = static_cast<int32_t>(part.size()) - 1, place = static_cast<int32_t>(position), all = int32_t{1};
  part.resize(static_cast<size_t>(size));
  HostTensor next = host_tensor(DType::i32, {1, 1}, std::vector<int32_t>{0});
  data::TensorSet one("tokens", {{"tokens", host_tensor(DType::i32, {1, size}, part)}, {"next", next}});
  auto it = programs_.find(size);
  if (it == programs_.end()) {
    model_.bind(data::TensorSet("token", {{"tokens", next}, {"next", next}}));
    Graph g = model_.programs().decoding(layout_of(one, "token", false), context_);
    vocabulary_ = g.latest("generate.logits").shape().at(0);
    it = programs_.emplace(size, model_.prepare(g)).first;
    model_.initialize();
  }
  for (int32_t token : part)
    if (token < 0 || token >= vocabulary_)
      throw invalid(fmt::format("token {}: must be below {}, the size of the model's vocabulary", token, vocabulary_));
  model_.runner.wait(it->second->run([&](const std::string& feed, void* to) {
    if (feed == "position" || feed == "last" || feed == "valid")
      std::memcpy(to, feed == "position" ? &place : feed == "last" ? &last : &all, sizeof all);
    else
      one.read(feed, std::array<int32_t, 1>{0}, to);
  }));
  return model_.runner.read("generate.logits");
}

}  // namespace tutti
