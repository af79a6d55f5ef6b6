// The files of a run's curves.
#include "train/run/run_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "data/files/append_file.h"
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

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream lines(text_of(path));
  std::vector<std::string> all;
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  return all;
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

TEST(RunLog, APipeIsRefusedAndAnEndlessLineIsNotRead) {
  Folder folder;
  ASSERT_EQ(mkfifo((folder / "steps.csv").c_str(), 0600), 0);
  EXPECT_EQ(
      error_of([&] { RunLog log(folder.path()); }),
      fmt::format("log folder {}: steps.csv is not a regular file | remove it, or name another folder", folder.path()));
  Folder other;
  std::ofstream(other / "steps.csv").put('x');
  std::filesystem::resize_file(other / "steps.csv", uint64_t{10} << 30);  // sparse
  RunLog log(other.path());
  log.step(1, {{"loss", 1}});
  EXPECT_NE(log.take_notice().find("columns of a different run"), std::string::npos);
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
  std::vector<std::string> all = lines_of(path + "/steps.csv");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0], "step,seconds,loss,rate");
  EXPECT_TRUE(all[2].starts_with("2,") && all[2].ends_with(",0.5,0.5")) << all[2];
  EXPECT_TRUE(all[4].starts_with("4,") && all[4].ends_with(",0.25,0.5")) << all[4];
}

TEST(RunLog, AFileGoesOnWithTheColumnsThatItHas) {
  Folder folder;
  std::string name = R"(grad_norm/a,"b")";  // a file of weights may name them so
  folder.write("steps.csv", "step,seconds,loss,rate\n1,0.1,4,0.5\n");
  {
    RunLog log(folder.path(), true);
    log.step(2, {{"gradient_norm", 7}, {"loss", 3}, {"rate", 0.25}});
    EXPECT_EQ(log.take_notice(), folder / "steps.csv" + " is continued without a column for gradient_norm");
    log.step(3, {{"gradient_norm", 7}, {"loss", 2}, {"rate", 0.25}});
    log.norms(3, {{name, 1}, {"weight_norm/c", 2}});
    log.epoch(3, {{"loss", 1}});
    EXPECT_EQ(log.take_notice() + log.failure(), "");
  }
  std::vector<std::string> lines = lines_of(folder / "steps.csv");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[2].starts_with("2,") && lines[2].ends_with(",3,0.25")) << lines[2];
  EXPECT_TRUE(lines[3].starts_with("3,") && lines[3].ends_with(",2,0.25")) << lines[3];
  {
    RunLog log(folder.path(), true);
    log.step(4, {{"loss", 1}});
    EXPECT_EQ(log.take_notice(), folder / "steps.csv" + " gets no further values in the columns rate");
    log.norms(4, {{name, 3}, {"weight_norm/c", 4}});
    log.epoch(4, {{"accuracy", 1}});
    EXPECT_EQ(log.take_notice(), folder / "epochs.csv" + " has the columns of a different run and is not changed");
    EXPECT_EQ(log.failure(), "");
  }
  EXPECT_TRUE(lines_of(folder / "steps.csv").back().ends_with(",1,")) << lines_of(folder / "steps.csv").back();
  lines = lines_of(folder / "norms.csv");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], R"(step,seconds,"grad_norm/a,""b""",weight_norm/c)");
  EXPECT_TRUE(lines[2].ends_with(",3,4")) << lines[2];
  EXPECT_EQ(lines_of(folder / "epochs.csv").size(), 2u);
}

TEST(RunLog, AFolderThatCannotBeIsNamed) {
  Folder folder;
  folder.write("file", "x");
  std::string error = error_of([&] { RunLog(folder / "file/log"); });
  EXPECT_NE(error.find("/file/log"), std::string::npos) << error;
}

/// What a full disk does to a process: no file of it may grow beyond so many bytes.
class FullAt {
 public:
  explicit FullAt(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit small{bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FullAt() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, before_);
  }

 private:
  void (*before_)(int);
  rlimit old_{};
};

TEST(RunLog, WhatIsAddedInPartIsTakenBack) {
  Folder folder;
  AppendFile file(folder / "a.csv");
  EXPECT_TRUE(file.empty());
  EXPECT_TRUE(file.add("1234567\n"));
  {
    FullAt full(10);
    EXPECT_FALSE(file.add("abcdefg\n"));
    EXPECT_FALSE(file.add("h\ni\n"));
  }
  EXPECT_EQ(text_of(folder / "a.csv"), "1234567\n");
}

TEST(RunLog, AFullDiskEndsTheLogAndNothingElse) {
  Folder folder;
  RunLog log(folder.path());
  int64_t step = 0;
  {
    FullAt full(400);
    while (step < 100 && log.failure().empty()) log.step(++step, {{"loss", 1}});
    log.step(step + 1, {{"loss", 1}});
  }
  EXPECT_LT(step, 100);
  EXPECT_NE(log.failure().find(folder.path()), std::string::npos) << log.failure();
  EXPECT_EQ(text_of(folder / "steps.csv").find(fmt::format("\n{},", step + 1)), std::string::npos);
}

}  // namespace
}  // namespace tutti
