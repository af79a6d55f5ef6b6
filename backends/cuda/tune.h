// Chooses the algorithm of a library call: one that was tested on this device and, if requested, the fastest in a
// benchmark.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/call.h"
#include "core/base/dtype.h"
#include "sdk/library.h"
#include "sdk/plugin.h"

namespace tutti::cuda {

/// Inputs for which a result that is rounded twice differs from one that is rounded once.
struct RoundingTrial {
  std::vector<unsigned char> inputs;  ///< the value of every byte, per input
  double result = 0;                  ///< what every element of the first result must be
};
/// For sums of k products with a bias in f16 or bf16. None for other dtypes, and if it finds no numbers.
std::optional<RoundingTrial> rounding_trial(DType dtype, int64_t k);

/// A call with several algorithms, each bitwise reproducible. One is selected, initially the library's first choice
/// (candidate 0).
class Tunable : public Call {
 public:
  virtual size_t candidates() const = 0;
  virtual void select(size_t candidate) = 0;
  /// Workspace of the selected algorithm in bytes.
  virtual size_t workspace() const = 0;
  /// Bytes of the buffers of run() without the workspace.
  virtual std::vector<uint64_t> buffer_bytes() const = 0;
  /// Dtype of all buffers.
  virtual DType dtype() const = 0;
  /// Whether the library applies an activation, which may turn NaN into a number. If so, the first result must be NaN
  /// everywhere if all inputs are NaN.
  virtual bool activates() const = 0;
  /// A trial for calls that may round before their epilogue: an algorithm that does is not used.
  virtual std::optional<RoundingTrial> rounding() const { return {}; }
  /// Unique description: library, version, types, shape, epilogue.
  virtual std::string description() const = 0;
  /// Serializes the selected algorithm for restore().
  virtual std::vector<std::byte> saved() const = 0;
  /// Selects a serialized algorithm. Returns false without changes if the library refuses it (another version, a
  /// damaged entry).
  virtual bool restore(std::span<const std::byte> algorithm) = 0;
};

/// Something else that computes a call, with the same buffers and scratch buffers instead of the workspace.
struct Rival {
  std::string text;                                   ///< identifies it
  std::vector<uint64_t> scratch;                      ///< bytes
  double hopeless = 0;                                ///< it is not tried against a call that takes fewer seconds
  std::function<std::unique_ptr<const Call>()> make;  ///< throws Error
};

/// Runs and times calls with separate scratch memory and a separate stream, between open() and close().
class CallTimer {
 public:
  virtual ~CallTimer() = default;
  /// Allocates buffers of these sizes. If that fails, throws Error(no_memory) and allocates nothing.
  virtual void open(std::span<const uint64_t> bytes) = 0;
  /// Sets every byte of a buffer.
  virtual void fill(size_t buffer, unsigned char byte) = 0;
  /// Runs the call once on these buffers, not in a graph, and waits. Rethrows errors of the call.
  virtual void run(const Call& call) = 0;
  /// The first `bytes` of a buffer.
  virtual std::vector<std::byte> read(size_t buffer, uint64_t bytes) = 0;
  /// Seconds per run of the call. Rethrows errors of the call; throws Error if a graph cannot record it.
  virtual double seconds(const Call& call) = 0;
  virtual void close() = 0;
};

/// Tests calls and chooses one of their algorithms, once per description and device. For reproducible results, a
/// measured choice is used only if it can be stored in the cache; otherwise the library's first one is used.
class Tuner {
 public:
  /// `device` identifies the device and its driver. TUTTI_CUDA_TUNE=0 disables benchmarking.
  Tuner(std::unique_ptr<CallTimer> timer, const sdk::Host& host, std::string device);

  /// Selects an algorithm of `call` that was tested: the cached one, else the fastest if the buffers of at least two
  /// candidates fit into `request.tuning_bytes`, else the library's first. Does nothing unless request.trial is set.
  /// Throws Error(declined) with the library's message if every algorithm fails, turns NaN into numbers or rounds
  /// twice, and Error(device_lost). Buffers above 1 GiB, or for which the device currently has no memory, are not
  /// tested: then the cached or the first algorithm is used untested, but an untested activation is declined.
  void choose(Tunable& call, const sdk::LibraryRequest& request);

  /// Throws Error(declined) if the rival takes less time than the call's selected algorithm. This is measured once and
  /// kept in the cache like a choice; if it cannot be, or with TUTTI_CUDA_TUNE=0, the call is used.
  void compare(Tunable& call, const Rival& rival, const sdk::LibraryRequest& request);

 private:
  /// State of a description in this process.
  struct Kept {
    bool decided = false;              ///< whether the choice is final: measured, or nothing to measure
    std::vector<std::byte> algorithm;  ///< a tested algorithm
    std::string refused;               ///< reason why all failed, or ""
  };
  Kept find(Tunable& call, const std::vector<size_t>& fitting);
  enum class Trial { ran, failed, untried };
  /// Runs the selected algorithm; sets `why` to the error, or to the reason why it was not tried.
  Trial trial(Tunable& call, std::string& why);
  std::string run_once(Tunable& call);
  /// The first elements of the first result.
  std::vector<double> first_result(const Tunable& call);
  bool restore(Tunable& call, const std::string& key, const std::string& text) const;
  bool remember(const Tunable& call, const std::string& key, const std::string& text);
  /// Selects the fastest working candidate and returns a log message; none if no candidate works or can be measured.
  std::optional<std::string> measure(Tunable& call, const std::vector<size_t>& fitting);
  /// Why the rival is used, "" if the call is; none if they cannot be measured.
  std::optional<std::string> beaten(Tunable& call, const Rival& rival);
  double seconds_of(const Call& run, const Tunable& call, std::span<const uint64_t> scratch);
  void trace(const std::string& text) const;

  std::unique_ptr<CallTimer> timer_;
  sdk::Host host_;
  std::string device_;
  bool wanted_ = true;
  std::map<std::string, Kept> known_;          // key: description
  std::map<std::string, std::string> beaten_;  // results of beaten() by cache key
};

}  // namespace tutti::cuda
