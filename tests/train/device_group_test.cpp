// When ranks add up among their devices.
#include "train/run/device_group.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

const std::vector<std::string> hosts{"a", "a", "b"};
std::vector<GroupOffer> offers() {
  return {{"", "NCCL 2.28.9", "gpu1"}, {"", "NCCL 2.28.9", "gpu2"}, {"", "NCCL 2.28.9", "gpu1"}};
}

TEST(DeviceGroup, OneGpuForEachRank) { EXPECT_EQ(group_refusal(offers(), hosts), ""); }

TEST(DeviceGroup, TwoRanksOnOneGpuAreNamed) {
  auto all = offers();
  all[1].device = "gpu1";
  EXPECT_EQ(group_refusal(all, hosts), "ranks 0 and 1 (a) use one GPU, and NCCL 2.28.9 needs one for each rank");
}

TEST(DeviceGroup, ARankThatCannotJoinSaysWhy) {
  auto all = offers();
  all[2].refusal = "NCCL cannot be opened";
  EXPECT_EQ(group_refusal(all, hosts), "rank 2 (b): NCCL cannot be opened");
}

TEST(DeviceGroup, DifferentLibrariesAreNamed) {
  auto all = offers();
  all[2].library = "NCCL 2.27.3";
  EXPECT_EQ(group_refusal(all, hosts), "rank 0 has NCCL 2.28.9, but rank 2 (b) has NCCL 2.27.3");
}

TEST(DeviceGroup, ADeviceThatCannotBeToldApart) {
  auto all = offers();
  all[1].device = "";
  EXPECT_NE(group_refusal(all, hosts).find("rank 1 (a): its device has neither a uuid nor a PCI address"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
