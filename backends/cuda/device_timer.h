// Runs and times library calls on an NVIDIA GPU.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/context.h"
#include "backends/cuda/tune.h"

namespace tutti::cuda {

/// Times a call in a CUDA graph, as in a step, with events around several repetitions.
class DeviceTimer : public CallTimer {
 public:
  explicit DeviceTimer(std::shared_ptr<Context> context) : context_(std::move(context)), api_(context_->api()) {}
  ~DeviceTimer() override { close(); }
  DeviceTimer(const DeviceTimer&) = delete;

  void open(std::span<const uint64_t> bytes) override;
  void fill(size_t buffer, unsigned char byte) override;
  /// Writes the beginning of a buffer.
  void write(size_t buffer, std::span<const std::byte> bytes);
  void run(const Call& call) override;
  std::vector<std::byte> read(size_t buffer, uint64_t bytes) override;
  double seconds(const Call& call) override;
  void close() override;

 private:
  void check(CUresult result, const char* what) const { context_->check(result, what); }
  /// Seconds of the second of two runs of `work`.
  double timed(const std::function<void()>& work);
  CUgraphExec record(const Call& call, int repeats);

  std::shared_ptr<Context> context_;
  const CudaApi& api_;
  std::vector<uint64_t> bytes_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
};

}  // namespace tutti::cuda
