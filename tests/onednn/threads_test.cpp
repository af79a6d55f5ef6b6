// oneDNN's library on our threads, and ours on an OpenMP runtime's where the user tunes that (CTest runs this program
// both ways).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dnnl.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "backends/onednn/imports.h"
#include "backends/onednn/openmp.h"
#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

bool tuned() { return !tuned_by().empty(); }

/// How many threads of this process have a name that begins so.
int threads_named(const std::string& prefix) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name.starts_with(prefix);
  }
  return count;
}

using Desc = dnnl::memory::desc;
using Type = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

struct Images {
  Desc desc;
  std::vector<float> values;
  explicit Images(const dnnl::memory::dims& dims, Tag tag = Tag::abcd, float step = 0.25F)
      : desc(dims, Type::f32, tag), values(desc.get_size() / 4) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = step * static_cast<float>(static_cast<int>(i * 7 % 13) - 6);
  }
};

/// All results of a convolution, its gradients and a reorder with that many threads, of small whole numbers: exact.
std::vector<float> results(int threads) {
  ThreadScope scope(threads);
  dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  Images x({4, 16, 17, 19}), w({32, 16, 3, 3}), y({4, 32, 17, 19}, Tag::abcd, 0), dy({4, 32, 17, 19}),
      dw({32, 16, 3, 3}, Tag::abcd, 0);
  Images dx({4, 16, 17, 19}, Tag::abcd, 0), blocked({4, 16, 17, 19}, Tag::aBcd16b, 0);
  dnnl::memory::dims one = {1, 1};
  auto memory = [&](Images& m) { return dnnl::memory(m.desc, engine, m.values.data()); };
  auto kind = dnnl::prop_kind::forward_training;
  auto direct = dnnl::algorithm::convolution_direct;
  dnnl::convolution_forward::primitive_desc forward(engine, kind, direct, x.desc, w.desc, y.desc, one, one, one);
  dnnl::convolution_forward(forward).execute(
      stream, {{DNNL_ARG_SRC, memory(x)}, {DNNL_ARG_WEIGHTS, memory(w)}, {DNNL_ARG_DST, memory(y)}});
  dnnl::convolution_backward_weights::primitive_desc weights(engine, direct, x.desc, dw.desc, dy.desc, one, one, one,
                                                             forward);
  dnnl::convolution_backward_weights(weights).execute(
      stream, {{DNNL_ARG_SRC, memory(x)}, {DNNL_ARG_DIFF_DST, memory(dy)}, {DNNL_ARG_DIFF_WEIGHTS, memory(dw)}});
  dnnl::convolution_backward_data::primitive_desc data(engine, direct, dx.desc, w.desc, dy.desc, one, one, one,
                                                       forward);
  dnnl::convolution_backward_data(data).execute(
      stream, {{DNNL_ARG_WEIGHTS, memory(w)}, {DNNL_ARG_DIFF_DST, memory(dy)}, {DNNL_ARG_DIFF_SRC, memory(dx)}});
  dnnl::memory from = memory(x), to = memory(blocked);
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  std::vector<float> all;
  for (const Images* m : {&y, &dw, &dx, &blocked}) all.insert(all.end(), m->values.begin(), m->values.end());
  return all;
}

TEST(OnednnThreads, TheImportsOfTheLibraryAreKnown) {
  std::vector<std::string> names;
  for (const Import& import : imports_of(dlsym(RTLD_DEFAULT, "dnnl_version"))) names.push_back(import.name);
  for (const char* name : {"omp_get_max_threads", "omp_get_thread_num", "memcpy"})
    EXPECT_TRUE(std::ranges::count(names, name)) << name;
  EXPECT_TRUE(imports_of(nullptr).empty());
}

TEST(OnednnThreads, ThereIsOneSetOfThreads) {
  EXPECT_EQ(OpenMp::get().why_not_ours().empty(), !tuned()) << OpenMp::get().why_not_ours();
  std::thread([] {}).join();  // with the first thread sanitizers start one of their own
  int before = threads_named("");
  results(3);
  std::atomic<int> parts{0};
  kernels::share(3, 1 << 30, 3, [&](int64_t first, int64_t last, int) { parts += static_cast<int>(last - first); });
  EXPECT_EQ(parts, 3);
  EXPECT_EQ(threads_named(""), before + 2);
  EXPECT_EQ(threads_named("tutti-"), tuned() ? 0 : 2);
}

TEST(OnednnThreads, ResultsAreTheSameWithAnyNumberOfThreads) {
  std::vector<float> one = results(1);
  for (int threads : {2, 3, 5}) EXPECT_TRUE(results(threads) == one) << threads;
}

TEST(OnednnThreads, SeveralThreadsOfAProcessComputeAtOnce) {
  std::vector<float> want = results(1);
  std::vector<std::thread> callers;
  std::atomic<int> right{0};
  for (int k = 0; k < 3; ++k)
    callers.emplace_back([&, k] {
      for (int round = 0; round < 5; ++round) right += results(2 + k) == want;
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(right, 15);
}

TEST(OnednnThreads, TheNumberOfThreadsIsEachCallersOwn) {
  int before = OpenMp::get().threads();
  {
    ThreadScope scope(before + 3);
    EXPECT_EQ(OpenMp::get().threads(), before + 3);
    std::thread([&] { EXPECT_EQ(OpenMp::get().threads(), before); }).join();
  }
  EXPECT_EQ(OpenMp::get().threads(), before);
}

}  // namespace
}  // namespace tutti::onednn
