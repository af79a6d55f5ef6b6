// NCCL, which sums memory of the GPUs of several processes, opened at run time. Its few functions are declared here,
// because CUDA's toolkit does not contain nccl.h; tests/cuda/nccl_header_test.cpp compares them with that header.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/status.h"

namespace tutti::cuda {

/// ncclUniqueId, which names a group of ranks.
struct NcclId {
  char internal[128];
};
using NcclComm = struct NcclCommunicator*;  ///< ncclComm_t

/// ncclResult_t.
enum NcclResult : unsigned {
  nccl_success = 0,
  nccl_unhandled_cuda_error = 1,
  nccl_system_error = 2,
  nccl_internal_error = 3,
  nccl_invalid_argument = 4,
  nccl_invalid_usage = 5,
  nccl_remote_error = 6,
  nccl_in_progress = 7,
};
/// ncclDataType_t, of the types that states have.
enum NcclType : unsigned {
  nccl_uint8 = 1,
  nccl_int32 = 2,
  nccl_uint32 = 3,
  nccl_int64 = 4,
  nccl_float16 = 6,
  nccl_float32 = 7,
  nccl_float64 = 8,
  nccl_bfloat16 = 9,
};
enum NcclOperation : unsigned { nccl_sum = 0 };  ///< ncclRedOp_t

/// The functions that are called, by their names.
struct NcclApi {
  NcclResult (*ncclGetVersion)(int*) = nullptr;
  NcclResult (*ncclGetUniqueId)(NcclId*) = nullptr;
  NcclResult (*ncclCommInitRank)(NcclComm*, int ranks, NcclId, int rank) = nullptr;
  NcclResult (*ncclCommFinalize)(NcclComm) = nullptr;
  NcclResult (*ncclCommDestroy)(NcclComm) = nullptr;
  NcclResult (*ncclCommAbort)(NcclComm) = nullptr;
  NcclResult (*ncclCommGetAsyncError)(NcclComm, NcclResult*) = nullptr;
  const char* (*ncclGetErrorString)(NcclResult) = nullptr;
  const char* (*ncclGetLastError)(NcclComm) = nullptr;
  NcclResult (*ncclGroupStart)() = nullptr;
  NcclResult (*ncclGroupEnd)() = nullptr;
  NcclResult (*ncclAllReduce)(const void*, void*, size_t, NcclType, NcclOperation, NcclComm, CUstream) = nullptr;
  NcclResult (*ncclBroadcast)(const void*, void*, size_t, NcclType, int root, NcclComm, CUstream) = nullptr;
};
#define TUTTI_NCCL_FUNCTIONS(X) \
  X(ncclGetVersion)             \
  X(ncclGetUniqueId)            \
  X(ncclCommInitRank)           \
  X(ncclCommFinalize)           \
  X(ncclCommDestroy)            \
  X(ncclCommAbort)              \
  X(ncclCommGetAsyncError)      \
  X(ncclGetErrorString) X(ncclGetLastError) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce) X(ncclBroadcast)

/// An opened NCCL.
struct Nccl {
  NcclApi api;
  int version = 0;  ///< 22809 is 2.28.9

  /// "NCCL 2.28.9".
  std::string text() const;
  /// Throws the Error of a failed call in a communicator (null: in none): declined for a wrong use, device_lost for an
  /// error of another rank or of the system, else internal.
  void check(NcclResult result, const char* what, NcclComm comm = nullptr) const;
};

/// Opens the first of these libraries (empty: libnccl.so.2 where NVIDIA's libraries are looked for). Throws
/// Error(declined) saying that it is missing or too old, and the remedy.
std::shared_ptr<const Nccl> open_nccl(const std::vector<std::string>& names = {});
/// Checks the version of these functions. Throws like open_nccl.
std::shared_ptr<const Nccl> start_nccl(const NcclApi& api);

/// The type of a state's elements. Throws Error(declined) for one that NCCL does not have.
NcclType nccl_type(DType dtype);

}  // namespace tutti::cuda
