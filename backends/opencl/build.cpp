// Kernels: from the cache's binary, else from source; what does not compile is left in a file to look at.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "backends/opencl/driver.h"

namespace tutti::opencl {
namespace {

// What a cache entry starts with. The sum keeps damaged bytes from drivers, which trust what they are given.
struct Header {
  char magic[8] = {'t', 'u', 't', 't', 'i', 'c', 'l', '1'};
  uint64_t sum = 0;
};

uint64_t fnv1a(const std::byte* data, size_t n) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; ++i) h = (h ^ static_cast<uint64_t>(data[i])) * 0x100000001b3u;
  return h;
}

std::string first_lines(const std::string& text, int count) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; count > 0 && std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    out += (out.empty() ? "" : "\n") + line;
    --count;
  }
  return out;
}

/// Writes the source with line numbers, then the log, to a new file of the temp folder; says where.
std::string keep_source(const std::string& text, const std::string& log) {
  static std::atomic<int> number{0};
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return "no temp folder to keep the source in";
  std::filesystem::path file = folder / fmt::format("tutti-opencl-{}-{}.cl", getpid(), number++);
  std::ofstream out(file, std::ios::trunc);
  std::istringstream in(text);
  int k = 0;
  for (std::string line; std::getline(in, line);) out << fmt::format("{:5}  {}\n", ++k, line);
  out << "\n" << log << "\n";
  out.close();
  return out ? fmt::format("the source with line numbers is in {}", file.string())
             : fmt::format("the source could not be written to {}", file.string());
}

std::vector<std::byte> entry_of(const cl::Program& program) {
  auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
  if (binaries.empty() || binaries[0].empty()) return {};
  const auto* data = reinterpret_cast<const std::byte*>(binaries[0].data());
  Header header;
  header.sum = fnv1a(data, binaries[0].size());
  std::vector<std::byte> out(sizeof header + binaries[0].size());
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, data, binaries[0].size());
  return out;
}

}  // namespace

sdk::KernelId Driver::build(const sdk::KernelSource& source, std::vector<std::byte>& cache) {
  alive();
  std::string options = "-cl-std=CL1.2 -w";  // some compilers print how many warnings they have
  if (source.exact && correctly_rounded_) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  if (!cache.empty()) {
    try {
      kernels_.push_back(checked_kernel(from_binary(cache, options), source));
      return static_cast<sdk::KernelId>(kernels_.size() - 1);
    } catch (const cl::Error& e) {
      host_.log(2, "kernels",
                fmt::format("{}: a cached kernel is refused, so it is built anew: {}: {}", name_, e.what(),
                            code_text(e.err())));
    }
    cache.clear();
  }
  // Contraction is on in OpenCL C unless the text says otherwise.
  std::string text = (source.exact ? "#pragma OPENCL FP_CONTRACT OFF\n" : "") + source.text;
  cl::Program program = compile(text, source.entry, options);
  try {
    kernels_.push_back(checked_kernel(program, source));
  } catch (const cl::Error& e) {
    throw Error(Code::compile, fmt::format("opencl: {}: kernel '{}': {}: {} ({})", name_, source.entry, e.what(),
                                           code_text(e.err()), keep_source(text, "")));
  }
  try {
    cache = entry_of(program);
  } catch (const cl::Error& e) {
    host_.log(2, "kernels", fmt::format("{}: gives no binary of a kernel: {}", name_, code_text(e.err())));
  }
  return static_cast<sdk::KernelId>(kernels_.size() - 1);
}

cl::Program Driver::from_binary(const std::vector<std::byte>& cache, const std::string& options) const {
  Header header, expected;
  if (cache.size() <= sizeof header) throw cl::Error(CL_INVALID_BINARY, "too short");
  std::memcpy(&header, cache.data(), sizeof header);
  const std::byte* data = cache.data() + sizeof header;
  size_t bytes = cache.size() - sizeof header;
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.sum != fnv1a(data, bytes))
    throw cl::Error(CL_INVALID_BINARY, "damaged");
  const auto* raw = reinterpret_cast<const unsigned char*>(data);
  cl::Program program(context_, {device_}, {std::vector<unsigned char>(raw, raw + bytes)});
  program.build({device_}, options.c_str());
  return program;
}

cl::Program Driver::compile(const std::string& text, const std::string& entry, const std::string& options) {
  cl::Program program;
  try {
    program = cl::Program(context_, text);
    program.build({device_}, options.c_str());
    return program;
  } catch (const cl::Error& e) {
    if (code_of(e.err()) != Code::compile && e.err() != CL_INVALID_PROGRAM)
      throw failed(e, fmt::format("building '{}'", entry));
    std::string log;
    try {
      log = program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_);
    } catch (const cl::Error&) {
      log = "the driver gives no build log";
    }
    throw Error(Code::compile, fmt::format("opencl: {}: kernel '{}' does not compile: {}\n{}\n({})", name_, entry,
                                           code_text(e.err()), first_lines(log, 6), keep_source(text, log)));
  }
}

Driver::Kernel Driver::checked_kernel(cl::Program program, const sdk::KernelSource& source) const {
  cl::Kernel kernel(program, source.entry.c_str());
  uint64_t items = uint64_t{source.local[0]} * source.local[1] * source.local[2];
  size_t most = kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device_);
  if (items == 0 || items > most)
    throw Error(Code::compile,
                fmt::format("opencl: {}: kernel '{}' wants groups of {} work-items; the device takes {} of it", name_,
                            source.entry, items, most));
  cl_uint arguments = kernel.getInfo<CL_KERNEL_NUM_ARGS>();
  if (arguments != source.buffers)
    throw Error(Code::compile,
                fmt::format("opencl: kernel '{}' has {} parameters, not {}", source.entry, arguments, source.buffers));
  return {std::move(program), source.entry, source.local, source.buffers};
}

}  // namespace tutti::opencl
