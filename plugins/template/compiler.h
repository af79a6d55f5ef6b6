// Kernels by the host's C++ compiler: text in, functions out, compiled code in the engine's cache.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/codegen/host.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

using tutti::codegen::HostKernel;

struct CompilerInfo {
  std::string command;   // $CXX, or c++
  std::string identity;  // of the compiler and of the CPU that it compiles for
  std::string unusable;  // why there is none, or ""
};
CompilerInfo find_compiler();

class Compiler {
 public:
  Compiler(const CompilerInfo& compiler, const tutti::sdk::Host& host);
  ~Compiler();
  /// One function per source, with the promises of sdk::Driver::build_all.
  std::vector<HostKernel> build(std::span<const tutti::sdk::KernelSource> sources,
                                std::span<std::vector<std::byte>> caches);

 private:
  struct Job;
  Job start(std::span<const tutti::sdk::KernelSource> sources, std::vector<size_t> list);
  void load(const std::string& key, const std::string& file);
  HostKernel find(const std::vector<std::byte>& entry);

  CompilerInfo info_;
  std::string folder_;  // private to this object
  tutti::sdk::Host host_;
  std::map<std::string, std::unique_ptr<void, int (*)(void*)>> libraries_;  // by their keys in the host's cache
  int files_ = 0;
};
