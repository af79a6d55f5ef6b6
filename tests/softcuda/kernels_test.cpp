// The portable kernels as NVRTC compiles them, interpreted: against float64 loops under all checks, and with faults
// planted, which the checks must find.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include "kernels/codegen/kernel.h"
#include "tests/softcuda/kernel_run.h"
#include "tests/softcuda/ptx.h"

namespace tutti::softcuda {
namespace {

using codegen::LaunchList;
using codegen::cases::Case;

constexpr Checks all_checks{true, true};

/// NVRTC, or null with the reason in `why`.
const cuda::NvrtcApi* nvrtc(std::string& why) {
  static std::string reason;
  static const auto opened = [&]() -> std::optional<cuda::NvrtcApi> {
    try {
      return cuda::open_nvrtc();
    } catch (const Error& e) {
      reason = e.what();
      return std::nullopt;
    }
  }();
  why = reason;
  return opened ? &*opened : nullptr;
}

size_t elements(const Case& c) {
  size_t n = 0;
  for (const auto* arrays : {&c.inputs, &c.expected})
    for (const auto& a : *arrays) n += a.at.size();
  return n;
}

class Kernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why;
    nvrtc_ = nvrtc(why);
    if (!nvrtc_) GTEST_SKIP() << why;
  }
  /// A part of the cases, small ones; all of them where the environment variable TUTTI_ALL_CASES is set.
  void run_all(const std::vector<Case>& all, size_t every) {
    if (!nvrtc_) return;
    bool each = std::getenv("TUTTI_ALL_CASES") != nullptr;
    size_t ran = 0;
    for (size_t n = 0; n < all.size(); n += each ? 1 : every) {
      const Case& c = all[n];
      if (!each && elements(c) > 20000) continue;
      ++ran;
      SCOPED_TRACE(c.name);
      try {
        LaunchList work = c.make(target());
        for (const codegen::Launch& d : work.launches) launched_.insert(d.name);
        auto got = run_kernels(*nvrtc_, GetParam(), all_checks, work, c.inputs, c.expected);
        EXPECT_EQ(codegen::cases::compare(c, got), "");
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    }
    EXPECT_GT(ran, 0u);
  }
  /// Only sm_80 and later have the products that the kernels use.
  static codegen::Target target() {
    codegen::Target t = codegen::cases::target(codegen::Language::cuda_c(), false);
    t.tensor_cores = std::string_view(GetParam()) != "compute_75";
    t.local_bytes = 49152;
    return t;
  }
  const cuda::NvrtcApi* nvrtc_ = nullptr;
  std::set<std::string> launched_;
};

TEST_P(Kernels, ElementwiseAgreesWithFloat64) { run_all(codegen::cases::elementwise_cases(), 24); }
TEST_P(Kernels, IndexAgreesWithFloat64) { run_all(codegen::cases::index_cases(), 12); }
TEST_P(Kernels, ReductionsAgreeWithFloat64) { run_all(codegen::cases::reduce_cases(), 24); }
TEST_P(Kernels, RowProgramsAgreeWithFloat64) { run_all(codegen::cases::row_cases(), 6); }
TEST_P(Kernels, KernelsInOneLaunchAgreeWithFloat64) { run_all(codegen::cases::together_cases(), 3); }
TEST_P(Kernels, AttentionAgreesWithFloat64) { run_all(codegen::cases::attention_cases(), 6); }
TEST_P(Kernels, AttentionOnTensorCoresAgreesWithFloat64) {
  run_all(codegen::cases::tensor_core_attention_cases(), target().tensor_cores ? 1 : 3);
  for (const char* name : {"attention_mma", "attention_mma_dq", "attention_mma_dkv"})
    EXPECT_EQ(launched_.contains(name), nvrtc_ && target().tensor_cores) << name;
}
TEST_P(Kernels, ProductsAgreeWithFloat64) { run_all(codegen::cases::matmul_cases(), 24); }
TEST_P(Kernels, ActivatedProductsAgreeWithFloat64) { run_all(codegen::cases::activation_cases(), 4); }
TEST_P(Kernels, ProductsOnTensorCoresAgreeWithFloat64) {
  run_all(codegen::cases::tensor_core_product_cases(), target().tensor_cores ? 1 : 5);
  EXPECT_EQ(launched_.contains("matmul_mma"), nvrtc_ && target().tensor_cores);
}
TEST_P(Kernels, ConvolutionsAgreeWithFloat64) { run_all(codegen::cases::conv_cases(), 24); }
TEST_P(Kernels, PoolsAgreeWithFloat64) { run_all(codegen::cases::pool_cases(), 8); }
TEST_P(Kernels, RecurrencesAgreeWithFloat64) { run_all(codegen::cases::recurrence_cases(), 7); }

INSTANTIATE_TEST_SUITE_P(Architectures, Kernels, testing::Values("compute_75", "compute_90"),
                         [](const auto& info) { return std::string(info.param); });

// ---- planted faults

/// The text with the first occurrence replaced; empty if there is none.
std::string replaced(std::string text, const std::string& what, const std::string& with) {
  size_t at = text.find(what);
  if (at == std::string::npos) return "";
  return text.replace(at, what.size(), with);
}

/// The address of the first instruction of that kind, moved by 4 bytes.
std::string moved(std::string text, const std::string& opcode) {
  size_t at = text.find(opcode);
  if (at == std::string::npos) return "";
  size_t bracket = text.find(']', at), plus = text.find('+', at);
  if (plus < bracket) {
    int offset = std::stoi(text.substr(plus + 1)) + 4;
    return text.replace(plus + 1, bracket - plus - 1, std::to_string(offset));
  }
  return text.insert(bracket, "+4");
}

/// The first instruction of that kind, for the first lanes of every warp only.
std::string for_some_lanes(const std::string& text, const std::string& opcode) {
  return replaced(text, opcode, "mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 7;\n@%p1 " + opcode);
}

struct Mutation {
  const char* name;
  std::string (*change)(const std::string& ptx);
  const char* needs;  ///< in the kernel's text
};
const Mutation mutations[] = {
    {"a barrier dropped", [](const std::string& t) { return replaced(t, "bar.sync \t0;", ""); }, " BARRIER;"},
    {"a barrier for some lanes", [](const std::string& t) { return for_some_lanes(t, "bar.sync"); }, " BARRIER;"},
    {"a shuffle for some lanes", [](const std::string& t) { return for_some_lanes(t, "shfl.sync"); },
     "= SHUFFLE_DOWN("},
    // Two warps do the same work, at the same places.
    {"lanes instead of threads", [](const std::string& t) { return replaced(t, "%tid.x;", "%laneid;"); },
     "threadIdx.x"},
    {"a store one element further", [](const std::string& t) { return moved(t, "st.global."); }, "threadIdx.x"},
};

/// The smallest case with a launch of that kernel and `needs` in its text for which the change can be planted. "": it
/// was found by the checks, with the kernel's name.
std::string undetected(const cuda::NvrtcApi& api, std::vector<Case> cases, const std::string& kernel,
                       const std::string& needs, const std::function<Changes(bool& planted)>& plant) {
  std::stable_sort(cases.begin(), cases.end(), [](auto& a, auto& b) { return elements(a) < elements(b); });
  for (const Case& c : cases) {
    codegen::Target target = codegen::cases::target(codegen::Language::cuda_c(), false);
    LaunchList work = c.make(target);
    bool has = std::any_of(work.launches.begin(), work.launches.end(), [&](const codegen::Launch& d) {
      codegen::KernelSource source = render(target, *d.kernel);
      return source.entry.starts_with(kernel) && source.text.find(needs) != std::string::npos;
    });
    if (!has) continue;
    bool planted = false;
    Changes changes = plant(planted);
    try {
      run_kernels(api, "compute_90", all_checks, work, c.inputs, c.expected, changes);
    } catch (const Fault& e) {
      return planted && std::string(e.what()).find(kernel) != std::string::npos ? "" : e.what();
    }
    if (planted) return c.name + ": not found";
  }
  return "no case has it";
}

class Planted : public testing::Test {
 protected:
  /// A fault in the text of a kernel.
  void expect_found(const std::vector<Case>& cases, const std::string& kernel, const std::set<std::string>& needed) {
    std::string why;
    const cuda::NvrtcApi* api = nvrtc(why);
    if (!api) GTEST_SKIP() << why;
    for (const Mutation& m : mutations) {
      if (!needed.contains(m.needs)) continue;
      auto plant = [&](bool& planted) {
        Changes changes;
        changes.text = [&](const std::string& text) {
          std::string other = text.find(kernel) == std::string::npos ? "" : m.change(text);
          planted |= !other.empty();
          return other.empty() ? text : other;
        };
        return changes;
      };
      EXPECT_EQ(undetected(*api, cases, kernel, m.needs, plant), "") << kernel << ": " << m.name;
    }
    auto swap = [&](bool& planted) {
      planted = true;
      Changes changes;
      changes.arguments = [&](const std::string& launched, std::vector<int>& buffers) {
        if (launched.starts_with(kernel)) std::swap(buffers.front(), buffers.back());
      };
      return changes;
    };
    EXPECT_EQ(undetected(*api, cases, kernel, "", swap), "") << kernel << ": two arguments swapped";
  }
};

TEST_F(Planted, InProducts) {
  expect_found(codegen::cases::matmul_cases(), "tutti_matmul_tile", {" BARRIER;", "threadIdx.x"});
}
TEST_F(Planted, InReductions) {
  expect_found(codegen::cases::reduce_cases(), "tutti_reduce", {"= SHUFFLE_DOWN(", "threadIdx.x"});
}
TEST_F(Planted, InColumnsOfRows) {
  expect_found(codegen::cases::row_cases(), "tutti_row_program_columns", {" BARRIER;"});
}
TEST_F(Planted, InConvolutions) {
  expect_found(codegen::cases::conv_cases(), "tutti_conv", {" BARRIER;", "threadIdx.x"});
}
TEST_F(Planted, InRecurrences) {
  expect_found(codegen::cases::recurrence_cases(), "tutti_lstm", {" BARRIER;", "threadIdx.x"});
}
TEST_F(Planted, InScatters) { expect_found(codegen::cases::index_cases(), "tutti_scatter", {"threadIdx.x"}); }

}  // namespace
}  // namespace tutti::softcuda
