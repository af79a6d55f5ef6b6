#include "backends/cuda/nccl.h"

#include <fmt/format.h>

#include "backends/cuda/open.h"

namespace tutti::cuda {
namespace {

constexpr int oldest = 21600;  // the first for CUDA 12
constexpr const char* remedy =
    "install NVIDIA's NCCL (libnccl2, or nvidia-nccl-cu12 or -cu13 from PyPI with its folder in LD_LIBRARY_PATH)";

/// NCCL_VERSION_CODE has another form before 2.9.
std::string version_text_of(int version) {
  const int major = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

Code code_of(NcclResult result) {
  switch (result) {
    case nccl_invalid_usage: return Code::declined;
    case nccl_unhandled_cuda_error:
    case nccl_system_error:
    case nccl_remote_error: return Code::device_lost;
    default: return Code::internal;
  }
}

}  // namespace

std::string Nccl::text() const { return "NCCL " + version_text_of(version); }

void Nccl::check(NcclResult result, const char* what, NcclComm comm) const {
  if (result == nccl_success) return;
  const char* name = api.ncclGetErrorString(result);
  const char* more = api.ncclGetLastError(comm);
  throw Error(code_of(result),
              fmt::format("{}: {}: {}{}{}", text(), what, name ? name : "an unknown error", more && *more ? ": " : "",
                          more ? more : ""),
              "NCCL_DEBUG=WARN shows more");
}

std::shared_ptr<const Nccl> start_nccl(const NcclApi& api) {
  auto nccl = std::make_shared<Nccl>(Nccl{api});
  nccl->check(api.ncclGetVersion(&nccl->version), "ncclGetVersion");
  if (nccl->version < oldest)
    throw Error(Code::declined,
                fmt::format("NCCL {} is too old: {} or newer is needed", version_text_of(nccl->version),
                            version_text_of(oldest)),
                remedy);
  return nccl;
}

std::shared_ptr<const Nccl> open_nccl(const std::vector<std::string>& names) {
  std::string why;
  void* library = open_first(names.empty() ? library_names("nccl", {"2"}) : names, why);
  if (!library)
    throw Error(Code::declined, fmt::format("NCCL, which sums over GPUs, cannot be opened ({})", why), remedy);
  NcclApi api;
#define TUTTI_NCCL_TAKE(name) take(library, #name, "libnccl.so.2", api.name);
  TUTTI_NCCL_FUNCTIONS(TUTTI_NCCL_TAKE)
#undef TUTTI_NCCL_TAKE
  return start_nccl(api);
}

NcclType nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return nccl_float32;
    case DType::f64: return nccl_float64;
    case DType::f16: return nccl_float16;
    case DType::bf16: return nccl_bfloat16;
    case DType::i32: return nccl_int32;
    case DType::u32: return nccl_uint32;
    case DType::i64: return nccl_int64;
    case DType::u8:
    case DType::boolean: return nccl_uint8;
  }
  throw Error(Code::declined, fmt::format("NCCL has no dtype {}", name(dtype)));
}

}  // namespace tutti::cuda
