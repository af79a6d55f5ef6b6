// The plugin's declarations of NCCL against nccl.h, and what it says where NCCL is missing, too old, or fails.
#include "backends/cuda/nccl.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include <type_traits>

namespace tutti::cuda {
namespace {

/// Whether two types are passed alike: both pointers, numbers of one size and sign, or structs of one size.
template <class A, class B>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<A> || std::is_pointer_v<B>) {
    return std::is_pointer_v<A> && std::is_pointer_v<B>;
  } else if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
    return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
           std::is_trivially_copyable_v<A>;
  } else {
    auto number = [](auto x) {
      if constexpr (std::is_enum_v<decltype(x)>)
        return std::underlying_type_t<decltype(x)>{};
      else
        return x;
    };
    return std::is_same_v<decltype(number(A{})), decltype(number(B{}))>;
  }
}
template <class A, class B>
struct Same : std::false_type {};
template <class R, class... A, class S, class... B>
struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return alike<R, S>() && (alike<A, B>() && ...);
    else
      return false;
  }();
};

#define TUTTI_NCCL_SAME(name) \
  static_assert(Same<decltype(NcclApi::name), decltype(&::name)>::value, "not as in nccl.h: " #name);
TUTTI_NCCL_FUNCTIONS(TUTTI_NCCL_SAME)
#undef TUTTI_NCCL_SAME
static_assert(!Same<decltype(NcclApi::ncclAllReduce), decltype(&::ncclBroadcast)>::value,
              "the comparison finds differences");

static_assert(sizeof(NcclId) == NCCL_UNIQUE_ID_BYTES && sizeof(NcclId) == sizeof(ncclUniqueId));
template <auto ours, auto theirs>
constexpr bool equal = static_cast<int64_t>(ours) == static_cast<int64_t>(theirs);
static_assert(equal<nccl_success, ncclSuccess> && equal<nccl_unhandled_cuda_error, ncclUnhandledCudaError> &&
              equal<nccl_system_error, ncclSystemError> && equal<nccl_internal_error, ncclInternalError> &&
              equal<nccl_invalid_argument, ncclInvalidArgument> && equal<nccl_invalid_usage, ncclInvalidUsage> &&
              equal<nccl_remote_error, ncclRemoteError> && equal<nccl_in_progress, ncclInProgress>);
static_assert(equal<nccl_uint8, ncclUint8> && equal<nccl_int32, ncclInt32> && equal<nccl_uint32, ncclUint32> &&
              equal<nccl_int64, ncclInt64> && equal<nccl_float16, ncclFloat16> && equal<nccl_float32, ncclFloat32> &&
              equal<nccl_float64, ncclFloat64> && equal<nccl_bfloat16, ncclBfloat16> && equal<nccl_sum, ncclSum>);

NcclResult wanted = nccl_success;
int version_here = NCCL_VERSION_CODE;

NcclApi fake() {
  wanted = nccl_success;
  version_here = NCCL_VERSION_CODE;
  NcclApi a;
  a.ncclGetVersion = [](int* v) {
    *v = version_here;
    return nccl_success;
  };
  a.ncclGetErrorString = [](NcclResult) { return "an error"; };
  a.ncclGetLastError = [](NcclComm) { return "its cause"; };
  return a;
}

/// The error of f, which must throw one.
template <class F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error";
  return Error(Code::ok, "");
}

TEST(NcclFakes, ItsVersionIsNamed) {
  auto api = fake();
  version_here = 22809;
  EXPECT_EQ(start_nccl(api)->text(), "NCCL 2.28.9");
}

TEST(NcclFakes, OneThatIsTooOldIsNamedWithWhatIsNeeded) {
  auto api = fake();
  for (auto [code, text] : {std::pair{21304, "NCCL 2.13.4 is too old: 2.16.0 or newer is needed"},
                            {2804, "NCCL 2.8.4 is too old: 2.16.0 or newer is needed"}}) {
    version_here = code;
    Error e = error_of([&] { start_nccl(api); });
    EXPECT_EQ(e.code, Code::declined);
    EXPECT_STREQ(e.what(), text);
    EXPECT_NE(e.remedy.find("libnccl2"), std::string::npos);
  }
}

TEST(NcclFakes, OneThatIsMissingIsNamedWithTheRemedy) {
  Error e = error_of([] { open_nccl({"libnone-such.so.2"}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("NCCL, which sums over GPUs, cannot be opened (libnone-such.so.2"),
            std::string::npos);
  EXPECT_NE(e.remedy.find("nvidia-nccl-cu"), std::string::npos);
}

TEST(NcclFakes, ALibraryThatIsNoneOfIts) {
  Error e = error_of([] { open_nccl({"libm.so.6"}); });
  EXPECT_EQ(e.code, Code::declined);
  EXPECT_NE(std::string(e.what()).find("ncclGetVersion"), std::string::npos);
}

TEST(NcclFakes, ErrorsHaveCodesAndSayWhatNcclSays) {
  auto nccl = start_nccl(fake());
  for (auto [result, code] : {std::pair{nccl_system_error, Code::device_lost},
                              {nccl_remote_error, Code::device_lost},
                              {nccl_unhandled_cuda_error, Code::device_lost},
                              {nccl_invalid_usage, Code::declined},
                              {nccl_invalid_argument, Code::internal},
                              {nccl_internal_error, Code::internal}}) {
    Error e = error_of([&] { nccl->check(result, "ncclAllReduce"); });
    EXPECT_EQ(e.code, code) << result;
    EXPECT_NE(std::string(e.what()).find("ncclAllReduce: an error: its cause"), std::string::npos) << e.what();
  }
  EXPECT_NO_THROW(nccl->check(nccl_success, "ncclAllReduce"));
}

}  // namespace
}  // namespace tutti::cuda
