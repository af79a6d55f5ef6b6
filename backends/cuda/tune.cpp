#include "backends/cuda/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/log.h"
#include "sdk/cache_key.h"

namespace tutti::cuda {
namespace {

constexpr double noise = 0.02;  // a later candidate must be faster by more than this

/// Closes the bench however its scope ends.
class Opened {
 public:
  Opened(Bench& bench, std::span<const uint64_t> bytes) : bench_(bench) { bench_.open(bytes); }
  ~Opened() { bench_.close(); }
  Opened(const Opened&) = delete;

 private:
  Bench& bench_;
};

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace

Tuner::Tuner(std::unique_ptr<Bench> bench, const sdk::Host& host, std::string device)
    : bench_(std::move(bench)), host_(host), device_(std::move(device)) {
  const char* wanted = std::getenv("TUTTI_CUDA_TUNE");
  wanted_ = !wanted || std::string(wanted) != "0";
}

void Tuner::choose(Tunable& call, uint64_t most_bytes) {
  if (!wanted_ || most_bytes == 0 || call.candidates() < 2) return;
  std::vector<uint64_t> buffers = call.buffer_bytes();
  uint64_t fixed = std::accumulate(buffers.begin(), buffers.end(), uint64_t{0});
  std::vector<size_t> fitting;
  for (size_t k = 0; k < call.candidates(); ++k) {
    call.select(k);
    if (fixed + call.workspace() <= most_bytes) fitting.push_back(k);
  }
  call.select(0);
  if (fitting.size() < 2) return;
  std::string text = fmt::format("{}\n{}\n", device_, call.description());
  std::string key = sdk::cache_key("algorithm", text);
  if (recall(call, key, text)) return trace(fmt::format("{}: the remembered algorithm", call.description()));
  std::string chosen = measure(call, fitting);
  if (recall(call, key, text)) {
    chosen = "the algorithm that another process has chosen meanwhile";
  } else if (!remember(call, key, text)) {
    call.select(0);
    wanted_ = false;
    chosen = "the library's first algorithm, because the host's cache remembers no other";
  }
  trace(fmt::format("{}: {}", call.description(), chosen));
}

bool Tuner::recall(Tunable& call, const std::string& key, const std::string& text) const {
  std::vector<std::byte> entry = host_.cache_get(key), head = bytes_of(text);
  if (entry.size() < head.size() || !std::equal(head.begin(), head.end(), entry.begin())) return false;
  return call.restore(std::span(entry).subspan(head.size()));
}

bool Tuner::remember(const Tunable& call, const std::string& key, const std::string& text) {
  std::vector<std::byte> entry = bytes_of(text), algorithm = call.saved();
  entry.insert(entry.end(), algorithm.begin(), algorithm.end());
  host_.cache_put(key, entry);
  return host_.cache_get(key) == entry;
}

std::string Tuner::measure(Tunable& call, const std::vector<size_t>& fitting) {
  std::vector<uint64_t> bytes = call.buffer_bytes();
  size_t largest = 0;
  for (size_t k : fitting) {
    call.select(k);
    largest = std::max(largest, call.workspace());
  }
  call.select(0);
  if (largest) bytes.push_back(largest);
  size_t best = fitting.front();
  double least = 0;
  std::string times;
  try {
    Opened opened(*bench_, bytes);
    for (size_t k : fitting) {
      call.select(k);
      double seconds = 0;
      try {
        seconds = bench_->seconds(call);
      } catch (const Error& e) {
        if (e.code == Code::device_lost) throw;
        times += fmt::format(" {}: {};", k + 1, e.what());
        continue;
      }
      times += fmt::format(" {}: {:.1f} us;", k + 1, seconds * 1e6);
      if (least == 0 || seconds < least * (1 - noise)) least = seconds, best = k;
    }
  } catch (const Error& e) {
    call.select(0);
    if (e.code == Code::device_lost) throw;
    return fmt::format("the library's first algorithm, because none was measured ({})", e.what());
  }
  call.select(best);
  return fmt::format("algorithm {} of {} ({})", best + 1, call.candidates(), times.substr(1, times.size() - 2));
}

void Tuner::trace(const std::string& text) const {
  if (log::traced("dispatch")) host_.log(3, "dispatch", text);
}

}  // namespace tutti::cuda
