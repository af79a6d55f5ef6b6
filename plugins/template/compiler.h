// Compiles kernels with the host's C++ compiler and stores the compiled code in the engine's cache.
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
  std::string identity;  // compiler version and target CPU
  std::string unusable;  // reason why no compiler is usable, or ""
};
CompilerInfo find_compiler();

class Compiler {
 public:
  Compiler(const CompilerInfo& compiler, const tutti::sdk::Host& host);
  ~Compiler();
  /// Returns one function per source, with the semantics of sdk::Driver::build_all.
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
  std::map<std::string, std::unique_ptr<void, int (*)(void*)>> libraries_;  // key: key in the host's cache
  int files_ = 0;
};
