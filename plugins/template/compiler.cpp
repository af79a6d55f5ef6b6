#include "compiler.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/cpus.h"
#include "sdk/cache_key.h"
#include "sdk/failed_kernel.h"

namespace sdk = tutti::sdk;
using tutti::Code, tutti::Error;

namespace {

// No -ffast-math: it would break NaN semantics. Kernels marked exact must not contract a * b + c either.
constexpr const char* flags = "-std=c++14 -O3 -march=native -fno-math-errno -fno-trapping-math -w -fPIC -shared";
constexpr size_t fewest = 8;  // minimum number of kernels per compiler run, because starting the compiler dominates

// Output of a running command.
using Pipe = std::unique_ptr<FILE, int (*)(FILE*)>;
Pipe started(const std::string& command) { return {popen((command + " 2>&1").c_str(), "r"), pclose}; }
std::string output_of(Pipe pipe, bool& good) {
  std::string text;
  char part[4096];
  while (size_t n = pipe ? std::fread(part, 1, sizeof part, pipe.get()) : 0) text.append(part, n);
  good = pipe && pclose(pipe.release()) == 0;
  return text;
}

}  // namespace

CompilerInfo find_compiler() {
  const char* chosen = secure_getenv("CXX");
  CompilerInfo info{chosen && *chosen ? chosen : "c++", "", ""};
  // Its predefined macros contain its version and this CPU's features.
  bool good = false;
  std::string macros = output_of(started(info.command + " -march=native -dM -E -x c++ /dev/null"), good);
  info.identity = info.command + " " + flags + sdk::cache_key("", macros);
  if (!good)
    info.unusable = fmt::format("the C++ compiler '{}' cannot be run: {} (install g++ or clang++, or set CXX)",
                                info.command, sdk::first_error(macros));
  return info;
}

Compiler::Compiler(const CompilerInfo& compiler, const sdk::Host& host) : info_(compiler), host_(host) {
  folder_ = (std::filesystem::temp_directory_path() / "tutti-myplugin-XXXXXX").string();
  if (!mkdtemp(folder_.data()))
    throw Error(Code::internal, "cannot create a folder in the temporary folder", "set TMPDIR to another folder");
}

Compiler::~Compiler() {
  libraries_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

// One compiler run, which builds several kernels to one shared object.
struct Compiler::Job {
  std::vector<size_t> list;  // indices of the sources
  std::string text, file, key;
  Pipe pipe;
};

Compiler::Job Compiler::start(std::span<const sdk::KernelSource> sources, std::vector<size_t> list) {
  std::vector<std::string_view> texts;
  for (size_t k : list) texts.push_back(sources[k].text);
  std::string text = tutti::codegen::host_unit(texts), file = fmt::format("{}/{}", folder_, files_++);
  const char* exact = sources[list[0]].exact ? "-ffp-contract=off" : "";
  std::ofstream(file + ".cpp") << text;
  return {std::move(list), text, file + ".so", sdk::cache_key("myplugin", info_.identity + exact + text),
          started(fmt::format("{} {} {} -o '{}.so' '{}.cpp'", info_.command, flags, exact, file, file))};
}

std::vector<HostKernel> Compiler::build(std::span<const sdk::KernelSource> sources,
                                        std::span<std::vector<std::byte>> caches) {
  std::vector<HostKernel> kernels(sources.size());
  std::vector<size_t> absent[2];  // by exactness, because it is a compiler option
  for (size_t k = 0; k < sources.size(); ++k)
    if (!(kernels[k] = find(caches[k]))) absent[sources[k].exact].push_back(k);

  std::vector<Job> jobs;  // run concurrently
  for (const std::vector<size_t>& all : absent) {
    auto cores = static_cast<size_t>(tutti::usable_cpus());
    size_t most = std::max(fewest, (all.size() + cores - 1) / cores);
    for (auto rest = std::span(all); !rest.empty(); rest = rest.subspan(std::min(most, rest.size()))) {
      auto part = rest.first(std::min(most, rest.size()));
      jobs.push_back(start(sources, {part.begin(), part.end()}));
    }
  }
  for (size_t j = 0; j < jobs.size(); ++j) {
    Job job = std::move(jobs[j]);
    bool good = false;
    std::string log = output_of(std::move(job.pipe), good);
    if (!good && job.list.size() > 1) {  // build individually to find the failing kernel
      for (size_t k : job.list) jobs.push_back(start(sources, {k}));
      continue;
    }
    if (!good) {
      std::string kept = sdk::dump_failed_kernel(job.text, log, "cpp"), why = sdk::first_error(log);
      throw sdk::BuildError(job.list[0],
                            Error(Code::compile, fmt::format("a kernel does not compile: {} ({})", why, kept)));
    }
    load(job.key, job.file);
    std::ifstream in(job.file, std::ios::binary);
    std::string code{std::istreambuf_iterator<char>(in), {}};
    host_.cache_put(job.key, std::as_bytes(std::span(code)));
    for (size_t n = 0; n < job.list.size(); ++n) {
      // A kernel's cache entry refers to its code: the key of the shared object and the symbol in it.
      std::string entry = job.key + " " + tutti::codegen::host_entry(n);
      auto bytes = std::as_bytes(std::span(entry));
      caches[job.list[n]].assign(bytes.begin(), bytes.end());
      kernels[job.list[n]] = find(caches[job.list[n]]);
    }
  }
  return kernels;
}

void Compiler::load(const std::string& key, const std::string& file) {
  std::unique_ptr<void, int (*)(void*)> library(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!library)
    throw Error(Code::compile, fmt::format("compiled kernels cannot be loaded: {}", dlerror()),
                "set TMPDIR to a folder from which programs can be executed");
  libraries_.insert_or_assign(key, std::move(library));
}

// The kernel of a cache entry; null if the entry is empty or its shared object is gone.
HostKernel Compiler::find(const std::vector<std::byte>& entry) {
  std::string text(reinterpret_cast<const char*>(entry.data()), entry.size());
  size_t space = text.find(' ');
  if (space == text.npos) return nullptr;
  std::string key = text.substr(0, space);
  if (!libraries_.contains(key)) {
    std::vector<std::byte> code = host_.cache_get(key);
    if (code.empty()) return nullptr;
    std::string file = fmt::format("{}/{}.so", folder_, files_++);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(code.data()), static_cast<std::streamsize>(code.size()));
    load(key, file);
  }
  return reinterpret_cast<HostKernel>(dlsym(libraries_.at(key).get(), text.c_str() + space + 1));
}
