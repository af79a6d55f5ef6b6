#include "core/base/cpus.h"

#include <gtest/gtest.h>
#ifdef _WIN32
#include <thread>
#else
#include <sched.h>
#endif

#include <fstream>

#include "core/base/cgroup.h"
#include "tests/support/folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

int allowed_cpus() {
#ifdef _WIN32
  return static_cast<int>(std::thread::hardware_concurrency());
#else
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : -1;
#endif
}

/// A machine's files under a folder of the test's own.
class Cpus : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  void v2(const std::string& group) {
    put("proc/self/cgroup", "0::" + group + "\n");
    put("proc/self/mountinfo",
        "24 1 0:22 / /proc rw - proc proc rw\n"
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1(const std::string& group, const std::string& mounted = "/") {
    put("proc/self/cgroup", "5:cpuset:" + group + "/other\n4:cpu,cpuacct:" + group + "\n1:name=systemd:/x\n0::/\n");
    put("proc/self/mountinfo",
        "32 28 0:29 " + mounted + " /sys/fs/cgroup/cpu\\040time rw - cgroup cgroup rw,cpuacct,cpu\n");
  }
  std::vector<std::string> folders(const std::string& controller) {
    std::vector<std::string> all;
    Cgroup groups = cgroup_of(controller, root);
    for (const fs::path& at : groups.folders)
      all.push_back(std::to_string(groups.version) + " " + at.lexically_relative(root).generic_string());
    return all;
  }

  test::Folder folder;
  fs::path root = folder.path();
};

TEST_F(Cpus, NoQuotaWithoutControlGroups) {
  EXPECT_EQ(cpu_quota(root), std::nullopt);
  EXPECT_EQ(usable_cpus(root), allowed_cpus());
}

TEST_F(Cpus, TheLeastQuotaUpToTheRootHolds) {
  v2("/user.slice/a b/run");
  EXPECT_EQ(cpu_quota(root), std::nullopt);
  put("sys/fs/cgroup/user.slice/a b/run/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(root), std::nullopt);
  put("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root), 1.5);
  put("sys/fs/cgroup/user.slice/a b/cpu.max", "25000 50000\n");
  EXPECT_EQ(cpu_quota(root), 0.5);
  EXPECT_EQ(usable_cpus(root), 1);
}

TEST_F(Cpus, AQuotaIsRoundedUp) {
  v2("/");
  put("sys/fs/cgroup/cpu.max", "100001 100000\n");
  EXPECT_EQ(usable_cpus(root), std::min(2, allowed_cpus()));
}

TEST_F(Cpus, QuotasOfVersionOne) {
  v1("/docker/1f");
  put("sys/fs/cgroup/cpu time/docker/1f/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu time/docker/1f/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root), std::nullopt);
  put("sys/fs/cgroup/cpu time/docker/cpu.cfs_quota_us", "70000\n");
  put("sys/fs/cgroup/cpu time/docker/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root), 0.7);
  EXPECT_EQ(usable_cpus(root), 1);
}

TEST_F(Cpus, GroupsAreToldFromWhatIsMounted) {
  fs::create_directories(root / "sys/fs/cgroup/cpu time/worker");
  v1("/docker/1f/worker", "/docker/1f");  // a container that sees its own group alone
  EXPECT_EQ(folders("cpu"), (std::vector<std::string>{"1 sys/fs/cgroup/cpu time/worker", "1 sys/fs/cgroup/cpu time"}));
  v1("/elsewhere", "/docker/1f");
  EXPECT_EQ(folders("cpu"), (std::vector<std::string>{"1 sys/fs/cgroup/cpu time"}));
  EXPECT_EQ(folders("memory"), std::vector<std::string>{});
}

TEST_F(Cpus, DamagedFilesLimitNothing) {
  v2("/a");
  for (const char* text : {"", "100000\n", "-5 100000\n", "100000 0\n", "many 100000\n"}) {
    put("sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(cpu_quota(root), std::nullopt) << text;
  }
  put("proc/self/cgroup", "0\n:\n0::\n");
  EXPECT_EQ(cpu_quota(root), std::nullopt);
}

}  // namespace
}  // namespace tutti
