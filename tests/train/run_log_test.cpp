// The files of a run's curves.
#include "train/run_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fstream>
#include <numeric>
#include <sstream>

#include "tests/support/error_of.h"
#include "tests/support/folder.h"

namespace tutti {
namespace {

using namespace tutti::test;

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// RFC 3720, appendix B.4.
TEST(RunLog, ChecksumsAreCastagnolis) {
  std::array<uint8_t, 32> bytes{};
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x8a9136aau);
  bytes.fill(0xff);
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x62a8ab43u);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x46dd794eu);
  std::reverse(bytes.begin(), bytes.end());
  EXPECT_EQ(crc32c(bytes.data(), 32), 0x113fdb5cu);
}

TEST(RunLog, LinesAreAppendedAndTheHeaderComesOnce) {
  Folder folder;
  std::string path = folder / "runs/one";
  for (int64_t first : {1, 3}) {
    RunLog log(path);
    for (int64_t k = first; k < first + 2; ++k) log.step(k, {{"loss", 1.0 / static_cast<double>(k)}, {"rate", 0.5}});
    log.epoch(first + 1, {{"accuracy", 0.25}});
    EXPECT_EQ(log.failure(), "");
  }
  std::istringstream lines(text_of(path + "/steps.csv"));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], "step,seconds,loss,rate");
  EXPECT_TRUE(all[2].starts_with("2,") && all[2].ends_with(",0.5,0.5")) << all[2];
  EXPECT_TRUE(all[4].starts_with("4,") && all[4].ends_with(",0.25,0.5")) << all[4];
}

TEST(RunLog, AFolderThatCannotBeIsNamed) {
  Folder folder;
  folder.write("file", "x");
  std::string error = error_of([&] { RunLog(folder / "file/log"); });
  EXPECT_NE(error.find("/file/log"), std::string::npos) << error;
}

/// Where the disk is full a log ends with whole lines and records, and its user is told once.
TEST(RunLog, AFullDiskEndsTheLogAndNothingElse) {
  Folder folder;
  RunLog log(folder.path());
  auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{400, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  int64_t step = 0;
  while (step < 100 && log.failure().empty()) log.step(++step, {{"loss", 1}});
  log.step(step + 1, {{"loss", 1}});
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  EXPECT_LT(step, 100);
  EXPECT_NE(log.failure().find(folder.path()), std::string::npos) << log.failure();
  EXPECT_TRUE(text_of(folder / "steps.csv").ends_with("\n"));
}

}  // namespace
}  // namespace tutti
