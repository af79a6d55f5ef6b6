// Every usable OpenCL device in turn; tests skip where there is none.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>

#include "backends/opencl/driver.h"
#include "tests/support/require.h"

namespace tutti::opencl {

/// A host whose cache is a map and whose log is a list.
struct MapHost {
  std::map<std::string, std::vector<std::byte>> blobs;
  std::vector<std::string> lines;
  TuttiHost raw = {sizeof(TuttiHost), 0, this, nullptr, keep_line, get, put};
  static void keep_line(void* self, int32_t, const char*, const char* text) {
    static_cast<MapHost*>(self)->lines.push_back(text);
  }
  static size_t get(void* self, const char* key, void* to, size_t room) {
    auto& blobs = static_cast<MapHost*>(self)->blobs;
    auto it = blobs.find(key);
    if (it == blobs.end()) return 0;
    if (to && room >= it->second.size()) std::memcpy(to, it->second.data(), it->second.size());
    return it->second.size();
  }
  static void put(void* self, const char* key, const void* from, size_t bytes) {
    auto* at = static_cast<const std::byte*>(from);
    static_cast<MapHost*>(self)->blobs[key].assign(at, at + bytes);
  }
  sdk::Host host() const { return sdk::Host(&raw); }
};

inline std::vector<Found> usable_devices() {
  std::vector<Found> out;
  for (const Found& f : find_devices([](int, const std::string&) {}))
    if (f.info.unusable.empty()) out.push_back(f);
  return out;
}

class OpenClTest : public testing::Test {
 protected:
  void SetUp() override {
    if (usable_devices().empty())
      test::skip_without("opencl", "no usable OpenCL device here (install pocl-opencl-icd)");
  }

  /// Runs `body` on a fresh driver of each device.
  template <class F>
  void on_each(F&& body) {
    for (const Found& f : usable_devices()) {
      SCOPED_TRACE(f.info.name);
      Driver driver(f, sdk::Host());
      body(driver);
    }
  }
};

/// Reads a whole vector of T from the start of a memory (or from `offset`).
template <class T>
std::vector<T> fetch(Driver& d, sdk::MemoryId memory, size_t count, uint64_t offset = 0) {
  std::vector<T> out(count);
  d.read({memory, offset, count * sizeof(T)}, out.data());
  return out;
}

template <class T>
sdk::MemoryId upload(Driver& d, const std::vector<T>& data) {
  sdk::MemoryId memory = d.allocate(data.size() * sizeof(T), "test");
  d.write({memory, 0, data.size() * sizeof(T)}, data.data());
  return memory;
}

inline std::vector<uint32_t> counting(size_t n, uint32_t from = 0) {
  std::vector<uint32_t> out(n);
  std::iota(out.begin(), out.end(), from);
  return out;
}

/// y[i] = `expression` of x[i] and y[i], eight work-items per group.
inline sdk::KernelSource map_kernel(const std::string& expression) {
  sdk::KernelSource s;
  s.text =
      "__kernel __attribute__((reqd_work_group_size(8, 1, 1)))\n"
      "void kernel_main(__global const uint* x, __global uint* y) {\n"
      "  uint i = get_global_id(0);\n"
      "  y[i] = " +
      expression +
      ";\n"
      "}\n";
  s.local = {8, 1, 1};
  s.written = {false, true};
  return s;
}

inline sdk::KernelId build(Driver& d, const sdk::KernelSource& source) {
  std::vector<std::byte> cache;
  return d.build(source, cache);
}

/// The Error that `body` throws; fails the test where it throws none.
template <class F>
Error error_from(F&& body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no error was thrown";
  return Error(Code::ok, "");
}

constexpr uint64_t forever = ~uint64_t{0};

}  // namespace tutti::opencl
