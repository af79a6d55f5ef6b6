#include "tests/codegen/host_run.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen::cases {
namespace {

constexpr size_t guard = 64;  // bytes
constexpr std::byte mark{0xa5};

/// The work-items of one group, each on a stack of its own, taking turns at barriers.
class Fibers {
 public:
  void run(HostKernel kernel, void* const* buffers, const uint32_t* group, void* shared,
           const std::array<uint32_t, 3>& local) {
    size_t count = size_t{local[0]} * local[1] * local[2];
    while (all_.size() < count) all_.push_back(std::make_unique<Fiber>());
    all_.resize(count);
    for (size_t n = 0; n < count; ++n) {
      Fiber& f = *all_[n];
      f.item = {static_cast<int>(n % local[0]), static_cast<int>(n / local[0] % local[1]),
                static_cast<int>(n / local[0] / local[1])};
      f.start = [=, &f] { kernel(buffers, group, shared, barrier, &f, f.item.data()), f.done = true; };
      f.done = false;
      prepare(f);
    }
    for (bool running = true; running;) {
      running = false;
      for (auto& f : all_) {
        if (f->done) continue;
        swapcontext(&main_, &f->context);
        running = true;
      }
    }
  }

 private:
  static constexpr size_t stack_bytes = 64 << 10;
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    std::array<int, 3> item;
    std::function<void()> start;
    Fibers* owner = nullptr;
    bool done = false;
  };
  void prepare(Fiber& f) {
    f.owner = this;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = stack_bytes;
    f.context.uc_link = &main_;
    auto at = reinterpret_cast<uintptr_t>(&f);
    makecontext(&f.context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(at >> 32),
                static_cast<unsigned>(at));
  }
  static void enter(unsigned high, unsigned low) { reinterpret_cast<Fiber*>(uint64_t{high} << 32 | low)->start(); }
  static void barrier(void* fiber) {
    auto* f = static_cast<Fiber*>(fiber);
    swapcontext(&f->context, &f->owner->main_);
  }
  ucontext_t main_;
  std::vector<std::unique_ptr<Fiber>> all_;
};

using Guarded = std::vector<std::byte>;

Guarded guarded(const std::vector<std::byte>& bytes) {
  Guarded g = bytes;
  g.resize(bytes.size() + guard, mark);
  return g;
}

void launch(HostKernel kernel, const KernelSource& source, const Launch& d, std::vector<Guarded>& buffers) {
  std::vector<void*> arguments;
  for (int b : d.buffers) arguments.push_back(buffers.at(static_cast<size_t>(b)).data());
  std::vector<uint32_t> numbers = source.numbers;
  if (!numbers.empty()) arguments.push_back(numbers.data());
  bool meets =
      source.text.find(" BARRIER;") != std::string::npos || source.text.find("= SHUFFLE_DOWN(") != std::string::npos;
  alignas(64) static char shared[1 << 16];
  Fibers fibers;
  for (uint32_t z = 0; z < d.groups[2]; ++z)
    for (uint32_t y = 0; y < d.groups[1]; ++y)
      for (uint32_t x = 0; x < d.groups[0]; ++x) {
        uint32_t group[] = {x, y, z};
        if (meets)
          fibers.run(kernel, arguments.data(), group, shared, source.local);
        else
          kernel(arguments.data(), group, shared, nullptr, nullptr, nullptr);
      }
  if (numbers != source.numbers) throw std::runtime_error("a kernel wrote over its numbers");
}

/// The text whose loops together end quietly after tutti_rounds rounds of a work-item, as some devices end them.
std::string with_limited_loops(const std::string& text) {
  size_t body = text.find("static inline void item_(");
  std::string out = "extern \"C\" int tutti_rounds;\n" + text.substr(0, body);
  bool begun = false;
  for (size_t at = body; at < text.size();) {
    if (!begun && text.compare(at, 2, "{\n") == 0) {
      out += "{ int rounds_left_ = tutti_rounds;\n";
      begun = true;
      at += 2;
    } else if (text.compare(at, 5, "for (") == 0 && text.compare(at, 7, "for (l[") != 0) {
      size_t from = text.find(';', at) + 1, to = text.find(';', from);
      out += text.substr(at, from - at) + " --rounds_left_ >= 0 && (" + text.substr(from, to - from) + ")";
      at = to;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

HostKernels::HostKernels(const std::vector<std::string>& texts) {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti_host_{}", getpid());
  std::filesystem::create_directories(folder);
  std::string source = (folder / "kernels.cpp").string(), library = (folder / "kernels.so").string();
  std::set<std::string_view> sorted(texts.begin(), texts.end());
  std::vector<std::string_view> distinct(sorted.begin(), sorted.end());
  std::vector<std::string> limited;
  for (std::string_view text : distinct) limited.push_back(with_limited_loops(std::string(text)));
  std::vector<std::string_view> views(limited.begin(), limited.end());
  std::ofstream(source) << "extern \"C\" { int tutti_rounds = 0; }\n" << host_unit(views);
  std::string command =
      fmt::format("{} -std=c++14 -O1 -w -ffp-contract=off -fPIC -shared {} -o '{}' '{}' > '{}.log' 2>&1",
                  TUTTI_HOST_COMPILER, TUTTI_HOST_FLAGS, library, source, source);
  if (std::system(command.c_str()) != 0) {
    std::ifstream log(source + ".log");
    std::string line, errors;
    while (std::getline(log, line) && errors.size() < 3000) errors += line + "\n";
    throw std::runtime_error(errors + "in " + source);
  }
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw std::runtime_error(dlerror());
  for (size_t k = 0; k < distinct.size(); ++k)
    kernels_[std::string(distinct[k])] = reinterpret_cast<HostKernel>(dlsym(library_, host_entry(k).c_str()));
  rounds_ = static_cast<int*>(dlsym(library_, "tutti_rounds"));
  std::filesystem::remove_all(folder);
}

HostKernels::~HostKernels() {
  if (library_) dlclose(library_);
}

std::vector<Array> run_on_host(const HostKernels& kernels, const Target& target, const LaunchList& work,
                               const std::vector<Array>& inputs, const std::vector<Array>& like) {
  std::vector<Guarded> buffers;
  for (const Array& a : inputs) buffers.push_back(guarded(a.bytes()));
  for (const Array& a : like)
    buffers.push_back(guarded(std::vector<std::byte>(a.at.size() * tutti::size_of(a.dtype), mark)));
  for (uint64_t n : work.scratch_bytes) buffers.push_back(guarded(std::vector<std::byte>(n, mark)));
  std::vector<Guarded> before = buffers;
  for (const Launch& d : work.launches) {
    KernelSource source = render(target, *d.kernel);
    kernels.allow(rounds_of(*d.kernel));
    launch(kernels.find(source.text), source, d, buffers);
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    size_t kept = b < inputs.size() ? 0 : buffers[b].size() - guard;
    for (size_t i = kept; i < buffers[b].size(); ++i)
      if (buffers[b][i] != before[b][i])
        throw std::runtime_error(fmt::format("buffer {}: byte {} must not be written", b, i));
  }
  std::vector<Array> results;
  for (size_t r = 0; r < like.size(); ++r) {
    Array a{like[r].dtype, std::vector<double>(like[r].at.size())};
    for (size_t i = 0; i < a.at.size(); ++i) a.at[i] = load_element(a.dtype, buffers[inputs.size() + r].data(), i);
    results.push_back(a);
  }
  return results;
}

}  // namespace tutti::codegen::cases
