// Builds kernels from cached binaries, else from source; sources that do not compile are dumped to a file.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "backends/opencl/driver.h"
#include "core/base/hash.h"
#include "kernels/codegen/joined.h"
#include "sdk/cache_key.h"
#include "sdk/failed_kernel.h"
#include "sdk/parallel_build.h"
#include "sdk/shortage.h"

namespace tutti::opencl {
namespace {

constexpr size_t batch_size = 16;  // kernels per program; more save little

// Header of cached bytes. The checksum keeps damaged bytes from drivers, which do not validate binaries.
struct Header {
  char magic[8] = {'t', 'u', 't', 't', 'i', 'c', 'l', '2'};
  uint64_t sum = 0;
};

std::vector<std::byte> sealed(const void* data, size_t n) {
  Header header;
  header.sum = fnv1a(data, n);
  std::vector<std::byte> out(sizeof header + n);
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, data, n);
  return out;
}

/// The payload of bytes made by sealed(). Throws cl::Error(CL_INVALID_BINARY).
std::span<const std::byte> opened(const std::vector<std::byte>& bytes) {
  Header header, expected;
  if (bytes.size() <= sizeof header) throw cl::Error(CL_INVALID_BINARY, "too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  std::span<const std::byte> data(bytes.data() + sizeof header, bytes.size() - sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
      header.sum != fnv1a(data.data(), data.size()))
    throw cl::Error(CL_INVALID_BINARY, "damaged");
  return data;
}

// A kernel's cache entry contains the key of its program in the host's cache and the kernel's name in it.
std::vector<std::byte> entry_of(const std::string& key, const std::string& name) {
  std::string text = key + "\n" + name;
  return sealed(text.data(), text.size());
}
std::pair<std::string, std::string> key_and_name(const std::vector<std::byte>& entry) {
  std::span<const std::byte> data = opened(entry);
  std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  size_t line = text.find('\n');
  if (line == text.npos) throw cl::Error(CL_INVALID_BINARY, "damaged");
  return {text.substr(0, line), text.substr(line + 1)};
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

}  // namespace

std::string Driver::options_of(const sdk::KernelSource& source) const {
  std::string options = "-cl-std=CL1.2 -w";  // -w: some compilers print the number of warnings
  if (!source.denormals) options += " -cl-denorms-are-zero";
  if (source.exact && traits_.rounded_division) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

std::vector<sdk::KernelId> Driver::do_build_all(std::span<const sdk::KernelSource> sources,
                                                std::span<std::vector<std::byte>> caches) {
  alive();
  std::vector<sdk::KernelId> ids(sources.size());
  std::vector<size_t> absent[4];  // by exactness and denormals, because they are compiler options
  for (size_t k = 0; k < sources.size(); ++k) {
    std::optional<Kernel> kernel;
    if (!caches[k].empty()) kernel = cached_kernel(sources[k], caches[k]);
    if (kernel) {
      ids[k] = add(std::move(*kernel));
    } else {
      caches[k].clear();
      absent[2 * sources[k].denormals + sources[k].exact].push_back(k);
    }
  }
  std::vector<Batch> batches;
  for (const std::vector<size_t>& list : absent)
    for (size_t at = 0; at < list.size(); at += batch_size)
      batches.emplace_back(batch_of(sources, std::span(list).subspan(at, std::min(batch_size, list.size() - at))));
  std::vector<std::exception_ptr> errors = sdk::parallel_build(batches.size(), [&](size_t b) { compile(batches[b]); });
  // Finishes in the order of the sources, so that errors are deterministic.
  for (size_t b = 0; b < batches.size(); ++b) {
    call("building kernels", [&] {
      if (errors[b]) std::rethrow_exception(errors[b]);
    });
    finish(sources, batches[b], caches, ids);
  }
  return ids;
}

Driver::Batch Driver::batch_of(std::span<const sdk::KernelSource> sources, std::span<const size_t> list) const {
  Batch b{list, {}, options_of(sources[list[0]]), "", "", {}};
  for (size_t k : list) b.sources.push_back(sources[k]);
  // Contraction is on in OpenCL C unless the text says otherwise.
  b.text = (b.sources[0].exact ? "#pragma OPENCL FP_CONTRACT OFF\n" : "") +
           (b.alone() ? b.sources[0].text : codegen::joined(b.sources));
  return b;
}

sdk::KernelId Driver::add(Kernel kernel) {
  kernels_.push_back(std::move(kernel));
  return static_cast<sdk::KernelId>(kernels_.size() - 1);
}

std::optional<Driver::Kernel> Driver::cached_kernel(const sdk::KernelSource& source,
                                                    const std::vector<std::byte>& entry) {
  auto refused = [&](const std::string& why) {
    host_.log(2, "kernels",
              fmt::format("{}: a cached kernel cannot be loaded, so it is compiled again: {}", name_, why));
  };
  try {
    auto [key, name] = key_and_name(entry);
    auto [at, fresh] = cached_programs_.try_emplace(key);
    if (fresh) at->second = from_binary(host_.cache_get(key), options_of(source));
    if (at->second()) return checked_kernel(at->second, name, source);  // null: it was refused before
  } catch (const cl::Error& e) {
    refused(fmt::format("{}: {}", e.what(), code_text(e.err())));
  } catch (const Error& e) {
    refused(e.what());
  }
  return {};
}

cl::Program Driver::from_binary(const std::vector<std::byte>& entry, const std::string& options) const {
  std::span<const std::byte> data = opened(entry);
  const auto* raw = reinterpret_cast<const unsigned char*>(data.data());
  cl::Program program(context_, {device_}, {std::vector<unsigned char>(raw, raw + data.size())});
  sdk::expect_room(sdk::room_to_compile);
  program.build({device_}, options.c_str());
  return program;
}

void Driver::finish(std::span<const sdk::KernelSource> sources, const Batch& b,
                    std::span<std::vector<std::byte>> caches, std::vector<sdk::KernelId>& ids) {
  const auto& [list, chosen, options, text, log, program] = b;
  bool alone = b.alone();
  const sdk::KernelSource& first = chosen[0];
  if (!program()) {
    if (alone)
      throw sdk::BuildError(
          list[0],
          Error(Code::compile, fmt::format("opencl: {}: kernel '{}' does not compile: {}\n({})", name_, first.entry,
                                           first_lines(log, 7), sdk::dump_failed_kernel(text, log, "cl"))));
    // Building individually finds the faulty kernel; texts that only conflict with each other still build.
    host_.log(2, "opencl",
              fmt::format("{}: {} kernels do not compile in one program, so they are compiled one by one: {}", name_,
                          list.size(), first_lines(log, 4)));
    for (size_t i = 0; i < list.size(); ++i) {
      Batch one = batch_of(sources, list.subspan(i, 1));
      call("building kernels", [&] { compile(one); });
      finish(sources, one, caches, ids);
    }
    return;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    std::string name = alone ? first.entry : codegen::joined_entry(chosen[i], i);
    try {
      ids[list[i]] = add(checked_kernel(program, name, chosen[i]));
    } catch (const Error& e) {
      throw sdk::BuildError(list[i], e);
    } catch (const cl::Error& e) {
      throw sdk::BuildError(list[i], Error(Code::compile, fmt::format("opencl: {}: kernel '{}': {}: {} ({})", name_,
                                                                      chosen[i].entry, e.what(), code_text(e.err()),
                                                                      sdk::dump_failed_kernel(text, "", "cl"))));
    }
  }
  if (caches_itself_) return;
  std::string key = store(program, options, text);
  if (key.empty()) return;
  for (size_t i = 0; i < list.size(); ++i)
    caches[list[i]] = entry_of(key, alone ? first.entry : codegen::joined_entry(chosen[i], i));
}

std::string Driver::store(const cl::Program& program, const std::string& options, const std::string& text) {
  try {
    auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
    if (binaries.empty() || binaries[0].empty()) return "";
    std::string all = fmt::format("{}\n{}\n{}", traits_.identity, options, text);
    std::string key = sdk::cache_key("opencl", all);
    host_.cache_put(key, sealed(binaries[0].data(), binaries[0].size()));
    return key;
  } catch (const cl::Error& e) {
    host_.log(
        2, "kernels",
        fmt::format("{}: cannot get the binary of a program, so it is not cached: {}", name_, code_text(e.err())));
    return "";
  }
}

void Driver::compile(Batch& b) const {
  cl::Program program;
  try {
    program = cl::Program(context_, b.text);
    sdk::expect_room(sdk::room_to_compile);
    program.build({device_}, b.options.c_str());
    b.program = program;
  } catch (const cl::Error& e) {
    if (code_of(e.err()) != Code::compile && e.err() != CL_INVALID_PROGRAM) throw;
    b.log = code_text(e.err()) + "\n";
    try {
      b.log += program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_);
    } catch (const cl::Error&) {
      b.log += "the driver returned no build log";
    }
  }
}

Driver::Kernel Driver::checked_kernel(cl::Program program, const std::string& name,
                                      const sdk::KernelSource& source) const {
  cl::Kernel kernel(program, name.c_str());
  uint64_t items = uint64_t{source.local[0]} * source.local[1] * source.local[2];
  size_t most = kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device_);
  if (items == 0 || items > most)
    throw Error(Code::compile,
                fmt::format("opencl: {}: kernel '{}' needs work-groups of {} work-items; the device supports {} for it",
                            name_, source.entry, items, most));
  cl_uint arguments = kernel.getInfo<CL_KERNEL_NUM_ARGS>();
  if (arguments != source.buffers())
    throw Error(Code::compile, fmt::format("opencl: kernel '{}' has {} parameters, not {}", source.entry, arguments,
                                           source.buffers()));
  return {std::move(program), name, source.local};
}

}  // namespace tutti::opencl
