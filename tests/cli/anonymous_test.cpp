// Reports hold no names of people, hosts and folders.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "cli/device_report/report.h"

namespace tutti::cli {
namespace {

TEST(Anonymous, PathsKeepTheirLastName) {
  setenv("HOME", "/srv/people/ada", 1);
  nlohmann::ordered_json out = anonymous({{"why", "cannot open '/opt/ada/drivers/libx.so.1': no such file"},
                                          {"list", {"~/runs/a.json", "/srv/people/ada/b.json: bad", "12 samples/s"}},
                                          {"command", "tutti parity --device cuda:0 --case relu:0:forward:f32"},
                                          {"seconds", 1.5}});
  EXPECT_EQ(out["why"], "cannot open 'libx.so.1': no such file");
  EXPECT_EQ(out["list"], (nlohmann::ordered_json{"a.json", "b.json: bad", "12 samples/s"}));
  EXPECT_EQ(out["command"], "tutti parity --device cuda:0 --case relu:0:forward:f32");
  EXPECT_EQ(out["seconds"], 1.5);
}

TEST(Anonymous, PathsOfWindowsToo) {
  EXPECT_EQ(anonymous(R"(cannot open C:\Users\ada\x.dll: no such file)"), "cannot open x.dll: no such file");
  EXPECT_EQ(anonymous(R"('D:/data/ada/b.json', \\server\ada\c.dll)"), "'b.json', c.dll");
  EXPECT_EQ(anonymous("cuda:0, relu:0:d1"), "cuda:0, relu:0:d1");
}

TEST(Anonymous, TheHostIsNotNamed) {
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  if (std::string(host.data()) == "localhost") GTEST_SKIP() << "the host has no name of its own";
  const std::string name = host.data();
  EXPECT_EQ(anonymous("lost on " + name + ", again"), "lost on HOST, again");
  EXPECT_EQ(anonymous("x" + name), "x" + name) << "only whole words";
}

}  // namespace
}  // namespace tutti::cli
