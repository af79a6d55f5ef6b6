// The algorithm of a library's call: one that was seen to work on this device, chosen by measuring where that is asked
// for.
#pragma once
#include <cstddef>
#include <cstdint>
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

/// A call that several algorithms of its library can compute, each to the same bits at every run; one is selected, at
/// first the library's own first choice (candidate 0).
class Tunable : public Call {
 public:
  virtual size_t candidates() const = 0;
  virtual void select(size_t candidate) = 0;
  /// Of the selected algorithm.
  virtual size_t workspace() const = 0;
  /// Bytes of the buffers of run(), but for the workspace.
  virtual std::vector<uint64_t> buffer_bytes() const = 0;
  /// Of all buffers.
  virtual DType dtype() const = 0;
  /// Whether the library applies an activation, which may make a number of NaN. Then the first result is one of such
  /// activations, all NaN where all inputs are.
  virtual bool activates() const = 0;
  /// Library, version, types, shape, epilogue: what tells this call from all others.
  virtual std::string description() const = 0;
  /// The selected algorithm as bytes for restore().
  virtual std::vector<std::byte> saved() const = 0;
  /// Selects the algorithm of saved(). False, with nothing changed, where the library refuses it (another version, a
  /// damaged entry).
  virtual bool restore(std::span<const std::byte> algorithm) = 0;
};

/// Where calls are tried and timed: scratch memory and a stream of their own, from open() to close().
class CallTimer {
 public:
  virtual ~CallTimer() = default;
  /// Allocates buffers of these sizes. Throws Error(no_memory), with nothing left behind.
  virtual void open(std::span<const uint64_t> bytes) = 0;
  /// Sets every byte of a buffer.
  virtual void fill(size_t buffer, unsigned char byte) = 0;
  /// Runs the call once on those buffers, outside of any graph, and waits. Throws what the call throws.
  virtual void run(const Call& call) = 0;
  /// The first `bytes` of a buffer.
  virtual std::vector<std::byte> read(size_t buffer, uint64_t bytes) = 0;
  /// Seconds of one run of the call. Throws what the call throws, and Error where a graph cannot record it.
  virtual double seconds(const Call& call) = 0;
  virtual void close() = 0;
};

/// Tries calls, and chooses among their algorithms once for every description and device. So that each run computes the
/// same bits, a choice that the cache does not keep is not made: the library's first one is taken instead.
class Tuner {
 public:
  /// `device` tells the device and its driver from all others. TUTTI_CUDA_TUNE=0: nothing is measured.
  Tuner(std::unique_ptr<CallTimer> timer, const sdk::Host& host, std::string device);

  /// Selects an algorithm of `call` that ran: the remembered one, else the fastest where `request.tuning_bytes` hold
  /// the buffers of two, else the library's first. Does nothing where request.trial is not set. Throws Error(declined)
  /// with the library's own words where every algorithm fails or makes numbers of NaN, Error(device_lost). Buffers of
  /// more than 1 GiB are not tried, nor those for which the device has no room just now: then the remembered or the
  /// first one is taken untried, but an activation that nobody has seen is declined.
  void choose(Tunable& call, const sdk::LibraryRequest& request);

 private:
  /// What is known of a description in this process.
  struct Kept {
    bool decided = false;              ///< by measuring, or because there is nothing to measure
    std::vector<std::byte> algorithm;  ///< that ran
    std::string refused;               ///< why none did, or ""
  };
  Kept find(Tunable& call, const std::vector<size_t>& fitting);
  enum class Trial { ran, failed, untried };
  /// Runs the selected algorithm; `why` says what was wrong, or why it was not tried.
  Trial trial(Tunable& call, std::string& why);
  std::string run_once(Tunable& call);
  bool restore(Tunable& call, const std::string& key, const std::string& text) const;
  bool remember(const Tunable& call, const std::string& key, const std::string& text);
  /// The fastest of those candidates that run, selected, and what there is to say; nothing where none does, or none
  /// could be measured.
  std::optional<std::string> measure(Tunable& call, const std::vector<size_t>& fitting);
  void trace(const std::string& text) const;

  std::unique_ptr<CallTimer> timer_;
  sdk::Host host_;
  std::string device_;
  bool wanted_ = true;
  std::map<std::string, Kept> known_;  // by description
};

}  // namespace tutti::cuda
