// Calls timed on an NVIDIA GPU.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "backends/cuda/tune.h"

namespace tutti::cuda {

/// Times a call as a step runs it, recorded into a CUDA graph, with events around several of them. It works in the
/// context that is current when it is made.
class DeviceBench : public Bench {
 public:
  /// Throws Error where there is no current context.
  explicit DeviceBench(std::shared_ptr<const Libraries> libraries);
  ~DeviceBench() override { close(); }
  DeviceBench(const DeviceBench&) = delete;

  void open(std::span<const uint64_t> bytes) override;
  double seconds(const Call& call) override;
  void close() override;

 private:
  void check(CUresult result, const char* what) const;
  double timed(const std::function<void()>& work);
  CUgraphExec record(const Call& call, int repeats);

  std::shared_ptr<const Libraries> libraries_;
  const CudaApi& api_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
};

}  // namespace tutti::cuda
