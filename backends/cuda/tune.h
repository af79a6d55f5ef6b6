// The algorithm of a library's call, chosen by measuring on the device, once: the host's cache keeps the choice.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/call.h"
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
  /// Library, version, types, shape, epilogue: what tells this call from all others.
  virtual std::string description() const = 0;
  /// The selected algorithm as bytes for restore().
  virtual std::vector<std::byte> saved() const = 0;
  /// Selects the algorithm of saved(). False, with nothing changed, where the library refuses it (another version, a
  /// damaged entry).
  virtual bool restore(std::span<const std::byte> algorithm) = 0;
};

/// Where calls are timed: scratch memory and a stream of their own, from open() to close().
class Bench {
 public:
  virtual ~Bench() = default;
  /// Allocates buffers of these sizes. Throws Error(no_memory), with nothing left behind.
  virtual void open(std::span<const uint64_t> bytes) = 0;
  /// Seconds of one run of the call on those buffers. Throws what the call throws, and Error where a graph cannot
  /// record it.
  virtual double seconds(const Call& call) = 0;
  virtual void close() = 0;
};

/// Chooses once for every description and device. So that each run computes the same bits, a choice that the cache does
/// not keep is not made: the library's first one is taken instead.
class Tuner {
 public:
  /// `device` tells the device and its driver from all others. TUTTI_CUDA_TUNE=0: choose() does nothing.
  Tuner(std::unique_ptr<Bench> bench, const sdk::Host& host, std::string device);

  /// Selects the remembered algorithm of `call`, else the fastest, else leaves the library's first choice: where there
  /// is one candidate only, where its buffers take more than `most_bytes` of device memory, and where nothing can be
  /// remembered. A device without room for them keeps the first choice too, and remembers that. Throws
  /// Error(device_lost).
  void choose(Tunable& call, uint64_t most_bytes);

 private:
  bool recall(Tunable& call, const std::string& key, const std::string& text) const;
  bool remember(const Tunable& call, const std::string& key, const std::string& text);
  std::string measure(Tunable& call, const std::vector<size_t>& fitting);
  void trace(const std::string& text) const;

  std::unique_ptr<Bench> bench_;
  sdk::Host host_;
  std::string device_;
  bool wanted_ = true;
};

}  // namespace tutti::cuda
