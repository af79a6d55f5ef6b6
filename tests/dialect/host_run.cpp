#include "tests/dialect/host_run.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>

namespace tutti::dialect::cases {
namespace {

constexpr size_t guard = 64;  // bytes
constexpr std::byte mark{0xa5};

/// One text in a namespace of its own, its entry renamed, its macros forgotten behind it.
std::string apart(const std::string& text, size_t number) {
  std::string code = fmt::format("namespace kernel_{} {{\n{}}}\n", number, text);
  if (size_t at = code.find("void kernel_main("); at != std::string::npos)
    code.insert(at + std::strlen("void kernel_main"), fmt::format("_{}", number));
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#define ")) names.insert(line.substr(8, line.find_first_of(" (", 8) - 8));
  for (const std::string& name : names) code += "#undef " + name + "\n";
  return code;
}

/// The work-items of one group, each on a stack of its own, taking turns at barriers.
class Fibers {
 public:
  void run(HostKernel kernel, void* const* buffers, const uint32_t* group, void* shared,
           const std::array<uint32_t, 3>& local) {
    all_.clear();
    for (int z = 0; z < static_cast<int>(local[2]); ++z)
      for (int y = 0; y < static_cast<int>(local[1]); ++y)
        for (int x = 0; x < static_cast<int>(local[0]); ++x) {
          auto f = std::make_unique<Fiber>();
          f->item = {x, y, z};
          f->start = [=, p = f.get()] { kernel(buffers, group, shared, meet, p, p->item.data()), p->done = true; };
          prepare(*f);
          all_.push_back(std::move(f));
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
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(64 << 10);
    std::array<int, 3> item;
    std::function<void()> start;
    Fibers* owner = nullptr;
    bool done = false;
  };
  void prepare(Fiber& f) {
    f.owner = this;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.data();
    f.context.uc_stack.ss_size = f.stack.size();
    f.context.uc_link = &main_;
    auto at = reinterpret_cast<uintptr_t>(&f);
    makecontext(&f.context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(at >> 32),
                static_cast<unsigned>(at));
  }
  static void enter(unsigned high, unsigned low) { reinterpret_cast<Fiber*>(uint64_t{high} << 32 | low)->start(); }
  static void meet(void* fiber) {
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

void launch(HostKernel kernel, const Dispatch& d, std::vector<Guarded>& buffers) {
  std::vector<void*> arguments;
  for (int b : d.buffers) arguments.push_back(buffers.at(static_cast<size_t>(b)).data());
  bool meets = d.source.text.find(" BARRIER;") != std::string::npos;
  alignas(64) static char shared[1 << 16];
  Fibers fibers;
  for (uint32_t z = 0; z < d.groups[2]; ++z)
    for (uint32_t y = 0; y < d.groups[1]; ++y)
      for (uint32_t x = 0; x < d.groups[0]; ++x) {
        uint32_t group[] = {x, y, z};
        if (meets)
          fibers.run(kernel, arguments.data(), group, shared, d.source.local);
        else
          kernel(arguments.data(), group, shared, nullptr, nullptr, nullptr);
      }
}

}  // namespace

HostKernels::HostKernels(const std::vector<std::string>& texts) {
  auto folder = std::filesystem::temp_directory_path() / fmt::format("tutti_host_{}", getpid());
  std::filesystem::create_directories(folder);
  std::string source = (folder / "kernels.cpp").string(), library = (folder / "kernels.so").string();
  std::vector<std::string> distinct;
  std::string code = "#include <cmath>\n#include <cstdint>\n#include <cstring>\n";
  for (const std::string& text : std::set<std::string>(texts.begin(), texts.end())) {
    code += apart(text, distinct.size());
    distinct.push_back(text);
  }
  std::ofstream(source) << code;
  std::string command = fmt::format("{} -std=c++17 -O1 -w -ffp-contract=off -fPIC -shared {} -o {} {} > {}.log 2>&1",
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
    kernels_[distinct[k]] = reinterpret_cast<HostKernel>(dlsym(library_, fmt::format("kernel_main_{}", k).c_str()));
  std::filesystem::remove_all(folder);
}

HostKernels::~HostKernels() {
  if (library_) dlclose(library_);
}

std::vector<Array> run_on_host(const HostKernels& kernels, const Work& work, const std::vector<Array>& inputs,
                               const std::vector<Array>& like) {
  std::vector<Guarded> buffers;
  for (const Array& a : inputs) buffers.push_back(guarded(a.bytes()));
  for (const Array& a : like)
    buffers.push_back(guarded(std::vector<std::byte>(a.at.size() * tutti::size_of(a.dtype), mark)));
  for (uint64_t n : work.scratch_bytes) buffers.push_back(guarded(std::vector<std::byte>(n, mark)));
  std::vector<Guarded> before = buffers;
  for (const Dispatch& d : work.dispatches) launch(kernels.find(d.source.text), d, buffers);
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

}  // namespace tutti::dialect::cases
