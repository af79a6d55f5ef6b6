// What memory is left, in synthetic trees of /proc and /sys.
#include "core/base/host_memory.h"

#include <gtest/gtest.h>

#include "core/base/cgroup.h"
#include "core/os/memory.h"
#include "tests/support/folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t mib = uint64_t{1} << 20;

/// A machine of 8000 MiB, of which 4000 are available, and 500 of swap; without control groups or limits.
class HostMemory : public testing::Test {
 protected:
  HostMemory() {
    write("proc/meminfo",
          "MemTotal:  8192000 kB\nMemFree:   1024 kB\nMemAvailable:  4096000 kB\nSwapFree:  512000 kB\n");
    write("proc/self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max data size             unlimited            unlimited            bytes     \n"
          "Max address space         unlimited            unlimited            bytes     \n");
    pages(100, 50);
  }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(folder_ / file).parent_path());
    folder_.write(file, text);
  }
  void pages(uint64_t all, uint64_t data) {
    write("proc/self/statm", std::to_string(all) + " 7 7 7 0 " + std::to_string(data) + " 0\n");
  }
  /// Files of a group, "name text" each.
  void group(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, text] : files) write(folder + "/" + name, text + "\n");
  }
  static std::string bytes(uint64_t m) { return std::to_string(m * mib); }
  uint64_t left() const { return host_memory_left(folder_.path()) / mib; }
  uint64_t total() const { return host_memory_total(folder_.path()) / mib; }
  fs::path root() const { return folder_.path(); }

  /// As systemd mounts version 2.
  void second_version(const std::string& own) {
    write("proc/self/cgroup", "0::" + own + "\n");
    write("proc/self/mountinfo",
          "24 1 0:22 / /proc rw,nosuid shared:5 - proc proc rw\n"
          "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  /// Version 1, beside an empty version 2; `mounted`: the group that the mount shows as its root.
  void first_version(const std::string& own, const std::string& mounted = "/") {
    write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:" + own + "\n0::/\n");
    write("proc/self/mountinfo",
          "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
          "35 31 0:32 " +
              mounted +
              " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
              "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  }

 private:
  test::Folder folder_;
};

TEST_F(HostMemory, OfAMachineIsWhatItHasAvailableAndSwap) {
  EXPECT_EQ(left(), 4500u);
  EXPECT_EQ(total(), 8000u);
}

TEST_F(HostMemory, IsUnknownWhereNothingSays) {
  if (os::memory_left() != ~uint64_t{0}) GTEST_SKIP() << "the system itself says";
  test::Folder empty;
  EXPECT_EQ(host_memory_left(empty.path()), unknown_memory);
  EXPECT_EQ(host_memory_total(empty.path()), unknown_memory);
}

TEST_F(HostMemory, OfVersion2IsWhatTheGroupLeaves) {
  second_version("/a/b");
  group("sys/fs/cgroup/a/b", {{"memory.max", bytes(300)},
                              {"memory.current", bytes(250)},
                              {"memory.stat", "anon 5\ninactive_file " + bytes(60) + "\nactive_file " + bytes(10)},
                              {"memory.swap.max", bytes(5)},
                              {"memory.swap.current", bytes(2)}});
  EXPECT_EQ(left(), 300u - 250 + 70 + 3);
  EXPECT_EQ(total(), 300u);
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(left(), 4500u);
}

TEST_F(HostMemory, OfVersion2IsBoundByTheGroupsAbove) {
  second_version("/a/b");
  group("sys/fs/cgroup/a/b", {{"memory.max", bytes(300)}, {"memory.current", bytes(0)}, {"memory.swap.max", "0"}});
  group("sys/fs/cgroup/a", {{"memory.max", bytes(200)}, {"memory.current", bytes(150)}, {"memory.swap.max", "0"}});
  EXPECT_EQ(left(), 50u);
  EXPECT_EQ(total(), 200u);
}

TEST_F(HostMemory, OfVersion1IsWhatTheGroupLeaves) {
  first_version("/a");
  group("sys/fs/cgroup/memory", {{"memory.limit_in_bytes", "9223372036854771712"}, {"memory.usage_in_bytes", "0"}});
  group("sys/fs/cgroup/memory/a",
        {{"memory.limit_in_bytes", bytes(300)},
         {"memory.usage_in_bytes", bytes(250)},
         {"memory.stat", "inactive_file 1\ntotal_inactive_file " + bytes(60) + "\ntotal_active_file " + bytes(10)}});
  EXPECT_EQ(left(), 300u - 250 + 70 + 500);  // and all of the machine's swap
  EXPECT_EQ(total(), 300u);
  group("sys/fs/cgroup/memory/a",
        {{"memory.memsw.limit_in_bytes", bytes(320)}, {"memory.memsw.usage_in_bytes", bytes(260)}});
  EXPECT_EQ(left(), 320u - 260 + 70);
}

/// A container of version 1 sees its own group as the root of the mount, and its host's path in /proc.
TEST_F(HostMemory, OfAContainerIsThatOfTheMountsRoot) {
  for (const char* own : {"/docker/0123", "/", "/../elsewhere", "/docker/0123/gone"}) {
    first_version(own, "/docker/0123");
    group("sys/fs/cgroup/memory", {{"memory.limit_in_bytes", bytes(256)},
                                   {"memory.usage_in_bytes", bytes(56)},
                                   {"memory.memsw.limit_in_bytes", bytes(256)},
                                   {"memory.memsw.usage_in_bytes", bytes(56)}});
    EXPECT_EQ(left(), 200u) << own;
    EXPECT_EQ(total(), 256u) << own;
  }
}

TEST_F(HostMemory, IsBoundByTheLimitsOfTheProcess) {
  uint64_t page = os::page_size();
  pages(100 * mib / page, 40 * mib / page);
  write("proc/self/limits",
        "Max address space         " + bytes(512) + "            unlimited            bytes     \n");
  EXPECT_EQ(left(), 412u);
  write("proc/self/limits", "Max data size             " + bytes(64) + "            unlimited            bytes     \n");
  EXPECT_EQ(left(), 24u);
  write("proc/self/limits", "Max address space         " + bytes(64) + "            unlimited            bytes     \n");
  EXPECT_EQ(left(), 0u);
}

TEST_F(HostMemory, AGroupOfAnotherControllerIsFoundBesides) {
  first_version("/a");
  Cgroup cpu = cgroup_of("cpu", root());
  EXPECT_EQ(cpu.version, 1);
  ASSERT_EQ(cpu.folders.size(), 1u);  // there is no folder x: the mount's root
  EXPECT_EQ(cpu.folders[0], root() / "sys/fs/cgroup/cpu");
  EXPECT_EQ(cgroup_of("pids", root()).version, 2);
  EXPECT_EQ(cgroup_of("memory", test::Folder().path()).version, 0);
}

}  // namespace
}  // namespace tutti
