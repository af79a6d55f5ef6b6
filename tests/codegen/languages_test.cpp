// The rendered texts of every case compile: GLSL by glslangValidator, CUDA C by NVRTC, each where it is installed.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <thread>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/cases.h"
#include "tests/support/require.h"

namespace tutti::codegen::cases {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto part : {elementwise_cases(), index_cases(), reduce_cases(), row_cases(), together_cases(),
                    attention_cases(), tensor_core_attention_cases(), matmul_cases(), activation_cases(),
                    tensor_core_product_cases(), conv_cases(), pool_cases(), recurrence_cases()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// How many cases stand for one, unless all are asked for.
size_t part(size_t n) { return std::getenv("TUTTI_ALL_CASES") ? 1 : n; }

/// Distinct texts: every kernel's first, and one of `every` of its others (other sizes and dtypes of the same kind).
std::vector<std::string> texts(const Language& language, bool cpu_like, size_t every, bool tensor_cores = false) {
  std::set<std::string> seen;
  std::map<std::string, size_t> of_kernel;
  std::vector<std::string> kept;
  Target t = target(language, cpu_like);
  t.tensor_cores = tensor_cores;
  for (const Case& c : all_cases()) {
    if (c.runs && !c.runs(t)) continue;
    for (const Launch& d : c.make(t).launches) {
      std::string text = render(t, *d.kernel).text;
      if (seen.insert(text).second && of_kernel[d.name]++ % every == 0) kept.push_back(text);
    }
  }
  return kept;
}

TEST(DialectLanguages, GlslCompiles) {
  if (std::system("glslangValidator --version > /dev/null 2>&1") != 0)
    return test::skip_without("vulkan", "glslangValidator is not installed");
  auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti_glsl_{}", getpid());
  std::filesystem::create_directories(folder);
  size_t count = 0;
  for (bool cpu_like : {true, false})
    for (const std::string& text : texts(Language::glsl(), cpu_like, part(5)))
      std::ofstream(folder / fmt::format("{}.comp", count++)) << text;
  std::string command = fmt::format(
      "cd '{}' && ls | grep comp | xargs -n 1 -P 2 glslangValidator --quiet --target-env vulkan1.2 -o /dev/null > log "
      "2>&1",
      folder.string());
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(folder / "log");
    std::string line, errors;
    while (std::getline(log, line) && errors.size() < 4000) errors += line + "\n";
    FAIL() << errors << "in " << folder;
  }
  std::filesystem::remove_all(folder);
  fmt::print("{} texts compiled to SPIR-V\n", count);
}

/// The few calls of NVRTC that are needed, loaded at run time.
struct Nvrtc {
  void* library = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*architectures)(int*) = nullptr;
  int (*list_architectures)(int*) = nullptr;
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(void*, int, const char* const*) = nullptr;
  int (*log_size)(void*, size_t*) = nullptr;
  int (*log)(void*, char*) = nullptr;
  int (*ptx_size)(void*, size_t*) = nullptr;
  int (*ptx)(void*, char*) = nullptr;
  int (*destroy)(void**) = nullptr;

  Nvrtc() {
    std::vector<std::string> names = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const char* home = std::getenv(variable))
        for (const char* folder : {"/lib64", "/lib"}) names.push_back(std::string(home) + folder + "/libnvrtc.so");
    for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"})
      names.push_back(std::string(folder) + "/libnvrtc.so");
    for (const std::string& name : names)
      if ((library = dlopen(name.c_str(), RTLD_NOW)) != nullptr) break;
    if (!library) return;
    auto find = [&](auto& f, const char* name) {
      f = reinterpret_cast<std::decay_t<decltype(f)>>(dlsym(library, name));
    };
    find(version, "nvrtcVersion");
    find(architectures, "nvrtcGetNumSupportedArchs");
    find(list_architectures, "nvrtcGetSupportedArchs");
    find(create, "nvrtcCreateProgram");
    find(compile, "nvrtcCompileProgram");
    find(log_size, "nvrtcGetProgramLogSize");
    find(log, "nvrtcGetProgramLog");
    find(ptx_size, "nvrtcGetPTXSize");
    find(ptx, "nvrtcGetPTX");
    find(destroy, "nvrtcDestroyProgram");
  }

  /// "13.0".
  std::string version_text() const {
    int major = 0, minor = 0;
    version(&major, &minor);
    return fmt::format("{}.{}", major, minor);
  }

  /// The numbers of the architectures that it compiles for.
  std::set<int> supported() const {
    int n = 0;
    if (!architectures || architectures(&n) != 0) return {};
    std::vector<int> list(static_cast<size_t>(n));
    list_architectures(list.data());
    return {list.begin(), list.end()};
  }

  /// The compiler's words about a text that it refuses, or "" and, where wanted, its PTX.
  std::string error_of(const std::string& text, const std::string& architecture, std::string* code = nullptr) const {
    void* program = nullptr;
    if (create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) return "nvrtcCreateProgram failed";
    std::string option = "--gpu-architecture=" + architecture;
    const char* options[] = {option.c_str(), "--std=c++17"};  // as the plugin compiles them
    std::string message;
    if (compile(program, 2, options) != 0) {
      size_t n = 0;
      log_size(program, &n);
      message.resize(n);
      log(program, message.data());
      if (message.empty()) message = "nvrtcCompileProgram failed";
    } else if (code) {
      size_t n = 0;
      ptx_size(program, &n);
      code->resize(n);
      ptx(program, code->data());
    }
    destroy(&program);
    return message;
  }
};

const Nvrtc& opened_nvrtc() {
  static const Nvrtc& opened = *new Nvrtc;
  return opened;
}

/// An architecture, and whether every text is compiled for it or only each kernel's first.
struct Architecture {
  int number;
  bool every;
};

class DialectCuda : public testing::TestWithParam<Architecture> {};

TEST_P(DialectCuda, Compiles) {
  const auto [number, every] = GetParam();
  const Nvrtc& nvrtc = opened_nvrtc();
  if (!nvrtc.library) GTEST_SKIP() << "NVRTC is not installed";
  if (!nvrtc.supported().contains(number))
    GTEST_SKIP() << "NVRTC " << nvrtc.version_text() << " does not compile for sm_" << number;
  const std::vector<std::string> list = texts(Language::cuda_c(), false, every ? 1 : part(SIZE_MAX), number >= 80);
  const std::string architecture = fmt::format("sm_{}", number);
  std::atomic<size_t> next = 0, compiled = 0;
  auto work = [&] {
    for (size_t i = next++; i < list.size(); i = next++)
      if (std::string error = nvrtc.error_of(list[i], architecture); error.empty())
        ++compiled;
      else
        ADD_FAILURE() << architecture << ": " << error << "\n" << list[i];
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(compiled, list.size());
  fmt::print("{}: {} of {} texts ({}) compiled by NVRTC {}\n", architecture, compiled.load(), list.size(),
             every ? "all" : "every kernel's first", nvrtc.version_text());
}

// Three generations see every text; between them the compiler differs less, so there each kernel's first will do.
INSTANTIATE_TEST_SUITE_P(Architectures, DialectCuda,
                         testing::Values(Architecture{75, true}, Architecture{80, true}, Architecture{90, true},
                                         Architecture{86, false}, Architecture{89, false}, Architecture{100, false}),
                         [](const auto& info) { return fmt::format("sm_{}", info.param.number); });

/// What NVRTC makes of single kernels.
class DialectPtx : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!opened_nvrtc().library) GTEST_SKIP() << "NVRTC is not installed";
    if (!opened_nvrtc().supported().contains(GetParam()))
      GTEST_SKIP() << "NVRTC " << opened_nvrtc().version_text() << " does not compile for sm_" << GetParam();
  }
  std::string ptx_of(const Case& c, bool tensor_cores = false) {
    Target t = target(Language::cuda_c(), false);
    t.tensor_cores = tensor_cores;
    LaunchList work = c.make(t);
    std::string ptx, error = opened_nvrtc().error_of(render(t, *work.launches.at(0).kernel).text,
                                                     fmt::format("sm_{}", GetParam()), &ptx);
    EXPECT_EQ(error, "");
    return ptx;
  }
  static const Case& find(const std::vector<Case>& all, const std::string& name) {
    auto at = std::find_if(all.begin(), all.end(), [&](const Case& c) { return c.name.starts_with(name); });
    if (at == all.end()) throw std::runtime_error("no case " + name);
    return *at;
  }
  static int count(const std::string& text, const char* pattern) {
    std::regex r(pattern);
    return static_cast<int>(std::distance(std::sregex_iterator(text.begin(), text.end(), r), std::sregex_iterator()));
  }
};

constexpr const char* wide_load = "ld\\.global[.a-z]*\\.v4\\.[a-z]32";
constexpr const char* wide_store = "st\\.global\\.v4\\.[a-z]32";
constexpr const char* shuffle = "shfl\\.sync\\.down";

TEST_P(DialectPtx, AdamMoves16BytesAtOnce) {
  const std::vector<Case> all = elementwise_cases();
  // Three tensors of four are long enough or whole fours: parameter, two moments and gradient in, three out.
  std::string f32 = ptx_of(find(all, "Adam, gradients in f32"));
  EXPECT_EQ(count(f32, wide_load), 3 * 4);
  EXPECT_EQ(count(f32, wide_store), 3 * 3);
  // Eight gradients in 16 bytes, and twice four of the others.
  std::string bf16 = ptx_of(find(all, "Adam, gradients in bf16"));
  EXPECT_EQ(count(bf16, wide_load), 2 * (1 + 3 * 2));
  EXPECT_EQ(count(bf16, wide_store), 2 * 3 * 2);
}

TEST_P(DialectPtx, AttentionMultipliesOnTensorCores) {
  const Case c = find(tensor_core_attention_cases(), "attention of shared heads in bf16");
  constexpr const char* product = "mma\\.sync\\.aligned\\.m16n8k16\\.row\\.col\\.f32\\.bf16\\.bf16\\.f32";
  std::string ptx = ptx_of(c, true);
  EXPECT_EQ(count(ptx, product), 4 + 2 * 4) << "32 keys by 16 elements, 32 elements by 32 keys: a team's of 64 keys";
  EXPECT_EQ(count(ptx, "ldmatrix\\.sync\\.aligned\\.m8n8\\.x4"), 2 + 2 * 2);
  EXPECT_EQ(count(ptx, "cp\\.async\\.cg\\.shared\\.global"), 2 * (1 + 1)) << "the first tile, and the next one";
  EXPECT_EQ(count(ptx_of(c), product), 0) << "where the device does not have them";
  const Case odd = find(tensor_core_attention_cases(), "attention of packed heads at odd places");
  EXPECT_EQ(count(ptx_of(odd, true), "cp\\.async\\.cg"), 0) << "rows do not begin at multiples of 16 bytes";
}

TEST_P(DialectPtx, ReductionsLoad16BytesAndShuffle) {
  const std::vector<Case> all = reduce_cases();
  std::string row = ptx_of(find(all, "sum f32[33, 1000]")), long_row = ptx_of(find(all, "sum f32[3, 5000]")),
              narrow = ptx_of(find(all, "max bf16[3, 5000]")), place = ptx_of(find(all, "argmax f32[33, 1000]"));
  for (const std::string* ptx : {&row, &long_row, &narrow}) EXPECT_GE(count(*ptx, wide_load), 1) << *ptx;
  EXPECT_EQ(count(row, shuffle), 5);
  EXPECT_EQ(count(row, "bar\\.sync"), 0) << "a warp has no one to wait for";
  EXPECT_EQ(count(long_row, shuffle), 10);
  EXPECT_EQ(count(long_row, "bar\\.sync"), 1);
  EXPECT_EQ(count(place, shuffle), 20);
}

INSTANTIATE_TEST_SUITE_P(Architectures, DialectPtx, testing::Values(80, 90),
                         [](const auto& info) { return fmt::format("sm_{}", info.param); });

}  // namespace
}  // namespace tutti::codegen::cases
