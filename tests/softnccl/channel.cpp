#include "tests/softnccl/channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <stdexcept>

namespace tutti::softnccl {
namespace {

Shared* map(const std::string& name, int flags) {
  int file = shm_open(name.c_str(), flags, 0600);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) throw std::runtime_error("no shared memory " + name);
  void* at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) throw std::runtime_error("no shared memory " + name);
  return static_cast<Shared*>(at);  // fresh memory is zero, and so are its atomics
}

}  // namespace

std::string make_shared_memory() {
  char name[64];
  std::random_device draw;
  std::snprintf(name, sizeof name, "/softnccl-%08x%08x", draw(), draw());
  munmap(map(name, O_CREAT | O_EXCL | O_RDWR), sizeof(Shared));
  return name;
}

Shared* open_shared_memory(const std::string& name) { return map(name, O_RDWR); }
void forget_shared_memory(const std::string& name) { shm_unlink(name.c_str()); }

}  // namespace tutti::softnccl
