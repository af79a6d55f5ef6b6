#include "backends/onednn/openmp.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <map>
#include <string_view>

#include "backends/onednn/imports.h"
#include "core/base/cpus.h"
#include "kernels/cpu/team.h"

namespace tutti::onednn {
namespace {

// ---- libgomp's functions on Tutti's threads

/// A loop with static scheduling.
struct Loop {
  long start = 0, step = 1, count = 0, chunk = 0, next = 0;
};

struct Call {
  void (*function)(void*);
  void* data;
  Loop outer;  // loop of the calling thread
};

thread_local std::deque<Call> calls;  // nested parallel regions; a deque keeps addresses valid
thread_local Loop loop;
thread_local int wanted_threads = 0;  // 0: number of CPUs

int max_threads() {
  if (wanted_threads == 0) wanted_threads = usable_cpus();
  return wanted_threads;
}
void set_num_threads(int threads) { wanted_threads = std::max(threads, 1); }
int num_threads() { return kernels::place().parts; }
int thread_num() { return kernels::place().part; }
int in_parallel() { return kernels::in_region(); }

void parallel_start(void (*function)(void*), void* data, unsigned threads) {
  calls.push_back({function, data, loop});
  auto compute = [](void* call, int) noexcept { static_cast<Call*>(call)->function(static_cast<Call*>(call)->data); };
  kernels::begin_region(threads == 0 ? max_threads() : static_cast<int>(threads), compute, &calls.back());
}

void parallel_end() {
  kernels::end_region();
  loop = calls.back().outer;
  calls.pop_back();
}

void parallel(void (*function)(void*), void* data, unsigned threads, unsigned) {
  parallel_start(function, data, threads);
  function(data);
  parallel_end();
}

bool loop_next(long* first, long* last) {
  auto [part, parts] = kernels::place();
  long begin = loop.next, end = loop.chunk ? std::min(begin + loop.chunk, loop.count) : loop.count * (part + 1) / parts;
  if (begin >= end) return false;
  loop.next = loop.chunk ? begin + loop.chunk * parts : loop.count;
  *first = loop.start + begin * loop.step;
  *last = loop.start + end * loop.step;
  return true;
}

bool loop_start(long start, long end, long step, long chunk, long* first, long* last) {
  auto [part, parts] = kernels::place();
  long count = std::max((end - start + step - (step > 0 ? 1 : -1)) / step, 0L);
  loop = {start, step, count, chunk, chunk ? chunk * part : count * part / parts};
  return loop_next(first, last);
}

void loop_end_nowait() {}

/// Converts a function pointer to the type of an import slot.
template <class F>
void* address(F* f) {
  return reinterpret_cast<void*>(f);
}

const std::map<std::string_view, void*> answers = {
    {"GOMP_parallel", address(parallel)},
    {"GOMP_parallel_start", address(parallel_start)},
    {"GOMP_parallel_end", address(parallel_end)},
    {"GOMP_barrier", address(kernels::barrier)},
    {"GOMP_loop_static_start", address(loop_start)},
    {"GOMP_loop_static_next", address(loop_next)},
    {"GOMP_loop_end", address(kernels::barrier)},
    {"GOMP_loop_end_nowait", address(loop_end_nowait)},
    {"omp_get_max_threads", address(max_threads)},
    {"omp_get_num_threads", address(num_threads)},
    {"omp_get_thread_num", address(thread_num)},
    {"omp_in_parallel", address(in_parallel)},
    {"omp_set_num_threads", address(set_num_threads)},
};

// ---- the runtime itself

template <class F>
F* runtime(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

struct Runtime {
  decltype(parallel)* run = runtime<decltype(parallel)>("GOMP_parallel");
  decltype(max_threads)* max = runtime<decltype(max_threads)>("omp_get_max_threads");
  decltype(set_num_threads)* set = runtime<decltype(set_num_threads)>("omp_set_num_threads");
  decltype(thread_num)* part = runtime<decltype(thread_num)>("omp_get_thread_num");
  decltype(num_threads)* parts = runtime<decltype(num_threads)>("omp_get_num_threads");
  bool whole() const { return run && max && set && part && parts; }
};

const Runtime& the_runtime() {
  static const Runtime one;
  return one;
}

void run_on_runtime(int parts, kernels::ComputePart f, void* context) {
  struct Shared {
    int parts;
    kernels::ComputePart f;
    void* context;
  } shared{parts, f, context};
  auto compute = [](void* data) noexcept {
    auto& s = *static_cast<Shared*>(data);
    const Runtime& r = the_runtime();
    for (int k = r.part(), n = r.parts(); k < s.parts; k += n) s.f(s.context, k);
  };
  the_runtime().run(compute, &shared, static_cast<unsigned>(parts), 0);
}

/// Redirects all of oneDNN's calls. Returns "" on success; on failure returns the reason and redirects none.
std::string take_over() {
  if (std::string variable = tuned_by(); !variable.empty()) return variable + " is set";
  std::vector<Import> mine;
  for (Import& import : imports_of(dlsym(RTLD_DEFAULT, "dnnl_version"))) {
    bool openmp = false;
    for (const char* prefix : {"GOMP_", "omp_", "__kmpc_", "kmp_"}) openmp = openmp || import.name.starts_with(prefix);
    if (openmp && !answers.contains(import.name)) return "oneDNN calls " + import.name;
    if (openmp) mine.push_back(std::move(import));
  }
  if (mine.empty()) return "oneDNN calls no OpenMP runtime that is known";
  std::vector<std::pair<Import, void*>> before;
  for (const Import& import : mine) {
    before.emplace_back(import, *import.slot);
    if (redirect(import, answers.at(import.name))) continue;
    for (auto& [changed, function] : before) redirect(changed, function);
    return "memory of oneDNN's library cannot be written";
  }
  return "";
}

}  // namespace

std::string tuned_by() {
  for (char** e = environ; *e; ++e) {
    std::string_view entry = *e, name = entry.substr(0, entry.find('='));
    if (name.starts_with("GOMP_") || name.starts_with("KMP_") || name == "OMP_PLACES") return std::string(name);
    if (name != "OMP_PROC_BIND") continue;
    std::string value(entry.substr(name.size()));
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    if (value != "=false") return std::string(entry);
  }
  return "";
}

OpenMp::OpenMp() : why_not_(take_over()) {
  if (!why_not_.empty() && the_runtime().whole()) kernels::set_runner(run_on_runtime);
}

const OpenMp& OpenMp::get() {
  static const OpenMp one;
  return one;
}

void OpenMp::set_threads(int threads) const {
  if (why_not_.empty())
    set_num_threads(threads);
  else if (the_runtime().whole())
    the_runtime().set(threads);
}

int OpenMp::threads() const { return why_not_.empty() || !the_runtime().whole() ? max_threads() : the_runtime().max(); }

ThreadScope::ThreadScope(int threads) : before_(OpenMp::get().threads()) { OpenMp::get().set_threads(threads); }
ThreadScope::~ThreadScope() { OpenMp::get().set_threads(before_); }

}  // namespace tutti::onednn
