#include "backends/cuda/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "core/base/log.h"
#include "sdk/cache_key.h"

namespace tutti::cuda {
namespace {

constexpr double noise = 0.02;                      // a later candidate must be faster by more than this
constexpr unsigned char all_nan = 0xFF;             // in every float format
constexpr unsigned char small_numbers = 0x3c;       // positive numbers in f32, f16 and bf16
constexpr uint64_t most_tried = uint64_t{1} << 30;  // maximum bytes of a call's buffers for a trial
constexpr uint64_t most_read = uint64_t{1} << 20;   // maximum bytes of a result to check for NaN

/// A timer that is open for a call until the end of the scope.
class Opened {
 public:
  Opened(CallTimer& timer, const Call& call, std::span<const uint64_t> bytes) : timer_(timer), call_(call) {
    timer_.open(bytes);
  }
  ~Opened() {
    call_.leave_stream();
    timer_.close();
  }
  Opened(const Opened&) = delete;

 private:
  CallTimer& timer_;
  const Call& call_;
};

/// Candidates whose buffers and workspace need at most `most_bytes`.
std::vector<size_t> candidates_within(Tunable& call, uint64_t most_bytes) {
  std::vector<uint64_t> buffers = call.buffer_bytes();
  uint64_t fixed = std::accumulate(buffers.begin(), buffers.end(), uint64_t{0});
  std::vector<size_t> fitting;
  for (size_t k = 0; k < call.candidates(); ++k) {
    call.select(k);
    if (fixed + call.workspace() <= most_bytes) fitting.push_back(k);
  }
  call.select(0);
  return fitting;
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes(text.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// The number of a dtype with these bytes.
double number_of(DType dtype, unsigned byte) {
  std::array<std::byte, 8> data;
  data.fill(std::byte(byte));
  return load_element(dtype, data.data(), 0);
}

}  // namespace

std::optional<RoundingTrial> rounding_trial(DType dtype, int64_t k) {
  if (dtype != DType::f16 && dtype != DType::bf16) return {};
  // Above `least`, GELU does not change a number. f16 has no larger one than `most`.
  constexpr double least = 16, most = 60000, margin = 1.0 / 8192;
  unsigned a = 0x40;  // 3 in bf16, 2.125 in f16
  for (unsigned b = 0x40; b < 0x50; ++b)
    for (unsigned c = 0x30; c < 0x60; ++c) {
      double sum = static_cast<double>(k) * number_of(dtype, a) * number_of(dtype, b), bias = number_of(dtype, c);
      double once = round_to(dtype, sum + bias), twice = round_to(dtype, round_to(dtype, sum) + bias);
      // Sums in f32 have small errors, which must not matter.
      bool clear =
          once == round_to(dtype, (sum + bias) * (1 + margin)) && once == round_to(dtype, (sum + bias) * (1 - margin));
      if (once != twice && clear && once >= least && once <= most)
        return RoundingTrial{
            {static_cast<unsigned char>(a), static_cast<unsigned char>(b), static_cast<unsigned char>(c)}, once};
    }
  return {};
}

Tuner::Tuner(std::unique_ptr<CallTimer> timer, const sdk::Host& host, std::string device)
    : timer_(std::move(timer)), host_(host), device_(std::move(device)) {
  const char* wanted = std::getenv("TUTTI_CUDA_TUNE");
  wanted_ = !wanted || std::string(wanted) != "0";
}

void Tuner::choose(Tunable& call, const sdk::LibraryRequest& request) {
  if (!request.trial) return;
  std::vector<size_t> fitting = wanted_ ? candidates_within(call, request.tuning_bytes) : std::vector<size_t>();
  Kept& known = known_[call.description()];
  bool undecided = fitting.size() > 1 && !known.decided;
  if (known.refused.empty() && !undecided && !known.algorithm.empty() && call.restore(known.algorithm)) return;
  if (known.refused.empty() || undecided) {
    Kept found = find(call, fitting);
    // If measuring finds no algorithm, keeps the one chosen before without measuring.
    if (found.refused.empty() || known.algorithm.empty() || !call.restore(known.algorithm)) known = std::move(found);
  }
  std::string refused = known.refused;
  if (!known.decided && !refused.empty()) known = {};  // not final if caused by lack of memory, which may change
  if (!refused.empty()) throw Error(Code::declined, refused);
}

Tuner::Kept Tuner::find(Tunable& call, const std::vector<size_t>& fitting) {
  bool several = fitting.size() > 1, outdated = false, untried = false;
  std::string text = fmt::format("{}\n{}\n", device_, call.description()), key = sdk::cache_key("algorithm", text), why;
  if (wanted_ && call.candidates() > 1 && restore(call, key, text)) {
    outdated = trial(call, why) == Trial::failed;
    trace(fmt::format("{}: the cached algorithm{}", call.description(), outdated ? ", which fails: " + why : ""));
    if (!outdated) return {true, call.saved(), ""};
  }
  call.select(0);
  if (several) {
    if (std::optional<std::string> chosen = measure(call, fitting)) {
      bool kept = false;
      if (!outdated && restore(call, key, text)) {
        chosen = "the algorithm that another process has chosen in the meantime";
      } else if (kept = remember(call, key, text); !kept) {
        call.select(0);
        wanted_ = false;
        chosen = "the library's first algorithm, because the choice cannot be cached";
      }
      trace(fmt::format("{}: {}", call.description(), *chosen));
      if (kept) return {true, call.saved(), ""};  // it was tested by measuring
    }
  }
  // The first algorithm that runs, starting with the selected one.
  std::string reasons;
  std::vector<std::byte> selected = call.saved();
  for (size_t k = 0; k <= call.candidates(); ++k) {
    if (k > 0) call.select(k - 1);
    if (k > 0 && call.saved() == selected) continue;
    Trial result = trial(call, why);
    untried = untried || result == Trial::untried;
    if (result == Trial::ran) return {several && !untried, call.saved(), ""};
    if (result == Trial::untried && !call.activates()) return {false, call.saved(), ""};
    if (reasons.find(why) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + why;
  }
  trace(fmt::format("{}: declined: {}", call.description(), reasons));
  return {!untried, {}, reasons};
}

bool Tuner::restore(Tunable& call, const std::string& key, const std::string& text) const {
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

std::vector<double> Tuner::first_result(const Tunable& call) {
  size_t y = call.inputs();
  uint64_t bytes = std::min<uint64_t>(call.buffer_bytes()[y], most_read);
  std::vector<std::byte> data = timer_->read(y, bytes);
  std::vector<double> list(bytes / size_of(call.dtype()));
  for (size_t i = 0; i < list.size(); ++i) list[i] = load_element(call.dtype(), data.data(), i);
  return list;
}

std::string Tuner::run_once(Tunable& call) {
  if (std::optional<RoundingTrial> rounding = call.rounding()) {
    for (size_t k = 0; k < rounding->inputs.size(); ++k) timer_->fill(k, rounding->inputs[k]);
    timer_->run(call);
    for (double y : first_result(call))
      if (y != rounding->result) return "it rounds the result before its epilogue";
  }
  size_t results = call.inputs(), buffers = call.buffer_bytes().size();
  for (size_t k = 0; k < buffers; ++k) timer_->fill(k, k < results && call.activates() ? all_nan : small_numbers);
  timer_->run(call);
  if (!call.activates()) return "";
  for (double y : first_result(call))
    if (!std::isnan(y)) return "its activation does not propagate NaN";
  for (size_t k = 0; k < results; ++k) timer_->fill(k, small_numbers);  // ordinary numbers for later measurements
  return "";
}

Tuner::Trial Tuner::trial(Tunable& call, std::string& why) {
  std::vector<uint64_t> bytes = call.buffer_bytes();
  if (size_t space = call.workspace()) bytes.push_back(space);
  try {
    if (std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}) > most_tried)
      throw Error(Code::no_memory, "its buffers need more memory than allowed for autotuning");
    Opened opened(*timer_, call, bytes);
    why = run_once(call);
    return why.empty() ? Trial::ran : Trial::failed;
  } catch (const Error& e) {
    if (e.code == Code::device_lost) throw;
    why = e.what();
    if (e.code != Code::no_memory) return Trial::failed;
    trace(fmt::format("{}: not tried: {}", call.description(), why));
    return Trial::untried;
  }
}

std::optional<std::string> Tuner::measure(Tunable& call, const std::vector<size_t>& fitting) {
  std::vector<uint64_t> bytes = call.buffer_bytes();
  size_t largest = 0;
  for (size_t k : fitting) {
    call.select(k);
    largest = std::max(largest, call.workspace());
  }
  if (largest) bytes.push_back(largest);
  size_t best = 0;
  double least = 0;
  std::string times;
  try {
    Opened opened(*timer_, call, bytes);
    for (size_t k : fitting) {
      call.select(k);
      double seconds = 0;
      try {
        std::string why = run_once(call);
        if (why.empty()) seconds = timer_->seconds(call);
        times +=
            why.empty() ? fmt::format(" {}: {:.1f} us;", k + 1, seconds * 1e6) : fmt::format(" {}: {};", k + 1, why);
        if (!why.empty()) continue;
      } catch (const Error& e) {
        if (e.code == Code::device_lost || e.code == Code::no_memory) throw;
        times += fmt::format(" {}: {};", k + 1, e.what());
        continue;
      }
      if (least == 0 || seconds < least * (1 - noise)) least = seconds, best = k;
    }
  } catch (const Error& e) {
    call.select(0);
    if (e.code == Code::device_lost) throw;
    trace(fmt::format("{}: not measured: {}", call.description(), e.what()));
    return std::nullopt;
  }
  call.select(best);
  if (least == 0) return std::nullopt;
  return fmt::format("algorithm {} of {} ({})", best + 1, call.candidates(), times.substr(1, times.size() - 2));
}

double Tuner::seconds_of(const Call& run, const Tunable& call, std::span<const uint64_t> scratch) {
  std::vector<uint64_t> bytes = call.buffer_bytes();
  bytes.insert(bytes.end(), scratch.begin(), scratch.end());
  Opened opened(*timer_, run, bytes);
  for (size_t k = 0; k < bytes.size(); ++k) timer_->fill(k, small_numbers);
  timer_->run(run);
  return timer_->seconds(run);
}

std::optional<std::string> Tuner::beaten(Tunable& call, const Rival& rival) {
  try {
    std::vector<uint64_t> workspace(call.workspace() ? 1 : 0, call.workspace());
    double own = seconds_of(call, call, workspace);
    if (own < rival.hopeless) return "";
    double other = seconds_of(*rival.make(), call, rival.scratch);
    std::string text = fmt::format("portable kernels take {:.1f} us, it {:.1f} us", other * 1e6, own * 1e6);
    trace(fmt::format("{}: {}", call.description(), text));
    return other < own * (1 - noise) ? text : "";
  } catch (const Error& e) {
    if (e.code == Code::device_lost) throw;
    trace(fmt::format("{}: not compared with portable kernels: {}", call.description(), e.what()));
    return std::nullopt;
  }
}

void Tuner::compare(Tunable& call, const Rival& rival, const sdk::LibraryRequest& request) {
  if (!request.trial || !wanted_) return;
  std::string text = fmt::format("{}\n{}\n{}\n", device_, call.description(), sdk::cache_key("kernels", rival.text));
  std::string key = sdk::cache_key("rival", text);
  auto known = [&]() -> std::optional<std::string> {
    std::vector<std::byte> entry = host_.cache_get(key), head = bytes_of(text);
    if (entry.size() < head.size() || !std::equal(head.begin(), head.end(), entry.begin())) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(entry.data()) + head.size(), entry.size() - head.size());
  };
  auto at = beaten_.find(key);
  if (at == beaten_.end()) {
    std::optional<std::string> why = known();
    if (!why) {
      std::vector<uint64_t> bytes = call.buffer_bytes();
      uint64_t fixed = std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
      uint64_t more = std::accumulate(rival.scratch.begin(), rival.scratch.end(), uint64_t{0});
      if (fixed + std::max<uint64_t>(more, call.workspace()) > request.tuning_bytes) return;
      std::optional<std::string> found = beaten(call, rival);
      if (!found) return;
      if (!known()) host_.cache_put(key, bytes_of(text + *found));  // else another process has measured meanwhile
      why = known();
      if (!why) wanted_ = false, why = "";
    }
    at = beaten_.emplace(key, *why).first;
  }
  if (!at->second.empty()) throw Error(Code::declined, at->second);
}

void Tuner::trace(const std::string& text) const {
  if (logging::traced("dispatch")) host_.log(3, "dispatch", text);
}

}  // namespace tutti::cuda
