// Writing checkpoints: whatever happens while it goes on, the file is the old one or the new one, whole.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/train/files.h"
#include "train/checkpoint.h"

namespace tutti {
namespace {

using namespace tutti::test;

// Every element tells which version it belongs to, so that a mixture would show.
Checkpoint version(int32_t number, size_t count = 64) {
  Checkpoint c;
  c.tensors["a"] = host_tensor<int32_t>(DType::i32, {static_cast<int64_t>(count)}, std::vector<int32_t>(count, number));
  c.tensors["b"] = c.tensors["a"];
  c.metadata["version"] = std::to_string(number);
  return c;
}

// Which version the file holds; fails unless it is whole.
int32_t version_of(const std::string& path, size_t count = 64) {
  Checkpoint c = read_checkpoint(path);
  int32_t number = std::stoi(c.metadata.at("version"));
  EXPECT_EQ(c.tensors, version(number, count).tensors) << "a mixture";
  return number;
}

// Runs `f` in a child process and returns its wait status; an exception in it is exit code 3.
int in_child(const std::function<int()>& f) {
  pid_t child = fork();
  if (child == 0) {
    int code = 3;
    try {
      code = f();
    } catch (...) {
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

void limit_file_size(size_t bytes) {
  rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(4);
}

TEST(CheckpointWrite, ReplacesAndKeepsMode) {
  Folder f;
  write_checkpoint(f / "c", version(1));
  ASSERT_EQ(chmod((f / "c").c_str(), 0640), 0);
  write_checkpoint(f / "c", version(2));
  EXPECT_EQ(version_of(f / "c"), 2);
  struct stat s {};
  ASSERT_EQ(stat((f / "c").c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777u, 0640u);
  EXPECT_EQ(f.count(), 1u);  // no temporary file is left
}

TEST(CheckpointWrite, FollowsALink) {
  Folder f;
  write_checkpoint(f / "real", version(1));
  std::filesystem::create_symlink("real", f / "link");
  write_checkpoint(f / "link", version(2));
  EXPECT_TRUE(std::filesystem::is_symlink(f / "link"));
  EXPECT_EQ(version_of(f / "real"), 2);
}

// The disk takes no more: the limit on file sizes stands for it, write() fails in the same place.
TEST(CheckpointWrite, FullDiskLeavesOldFile) {
  Folder f;
  write_checkpoint(f / "c", version(1));
  for (size_t room : {size_t{0}, size_t{100}, size_t{300}, size_t{100000}}) {
    int status = in_child([&] {
      signal(SIGXFSZ, SIG_IGN);
      limit_file_size(room);
      try {
        write_checkpoint(f / "c", version(2, 20000));
      } catch (const Error& e) {
        std::string text = std::string(e.what()) + " | " + e.remedy;
        bool named = text.find(f / "c") != std::string::npos && text.find("bytes needed") != std::string::npos &&
                     text.find("space") != std::string::npos;
        return named ? 0 : 1;
      }
      return 2;
    });
    EXPECT_EQ(status, 0) << "room for " << room << " bytes";
    EXPECT_EQ(version_of(f / "c"), 1);
    EXPECT_EQ(f.count(), 1u) << "the temporary file is still there";
  }
}

// Killed inside write(): the kernel's SIGXFSZ ends the process in the middle of the file.
TEST(CheckpointWrite, KilledInTheMiddleLeavesOldFile) {
  Folder f;
  write_checkpoint(f / "c", version(1));
  int status = in_child([&] {
    signal(SIGXFSZ, SIG_DFL);
    limit_file_size(100000);
    write_checkpoint(f / "c", version(2, 20000));
    return 0;
  });
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  EXPECT_EQ(version_of(f / "c"), 1);
  EXPECT_EQ(std::filesystem::file_size(f / "c.tmp"), 100000u);  // half written, beside the whole one
  write_checkpoint(f / "c", version(3));                        // and the next one writes over it
  EXPECT_EQ(version_of(f / "c"), 3);
  EXPECT_EQ(f.count(), 1u);
}

// SIGKILL at any moment of a loop of saves.
TEST(CheckpointWrite, SigkillAtAnyMoment) {
  Folder f;
  const size_t count = 300000;
  auto* written = static_cast<std::atomic<int>*>(
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(written, MAP_FAILED);
  for (int round = 0; round < 8; ++round) {
    write_checkpoint(f / "c", version(0, count));
    *written = 0;
    pid_t child = fork();
    if (child == 0) {
      for (int32_t i = 1;; ++i) {
        write_checkpoint(f / "c", version(i, count));
        *written = i;
      }
    }
    while (*written == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    int32_t found = version_of(f / "c", count);
    EXPECT_GE(found, *written);  // what write_checkpoint returned from is there
    EXPECT_LE(found, *written + 1);
  }
  munmap(written, sizeof(std::atomic<int>));
}

TEST(CheckpointWrite, NamesWhatIsWrongWithThePath) {
  Folder f;
  auto error_of = [](const std::string& path) { return message_of([&] { write_checkpoint(path, version(1)); }); };
  expect_parts(error_of(f / "no/such/folder/c"), {f / "no/such/folder/c", "No such file", "create the folder"});
  expect_parts(error_of(f.path()), {f.path(), "not a regular file"});
  expect_parts(error_of("/dev/full"), {"/dev/full", "not a regular file"});
  if (geteuid() != 0) {
    ASSERT_EQ(chmod(f.path().c_str(), 0500), 0);
    expect_parts(error_of(f / "c"), {f / "c", "Permission denied", "bytes needed"});
    ASSERT_EQ(chmod(f.path().c_str(), 0700), 0);
  }
  EXPECT_EQ(f.count(), 0u);
}

TEST(CheckpointWrite, TwoProcessesDoNotMix) {
  Folder f;
  int other = open((f / "c.tmp").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(other, 0);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  expect_parts(message_of([&] { write_checkpoint(f / "c", version(1)); }), {f / "c", "another process"});
  EXPECT_TRUE(std::filesystem::exists(f / "c.tmp"));  // it is the other's
  close(other);
  write_checkpoint(f / "c", version(1));
  EXPECT_EQ(version_of(f / "c"), 1);
}

TEST(CheckpointWrite, RefusesWhatTheFormatCannotHold) {
  Folder f;
  Checkpoint c = version(1);
  c.tensors["a"].bytes.pop_back();
  expect_parts(message_of([&] { write_checkpoint(f / "c", c); }), {"'a'", "i32[64]", "256 bytes", "255"});
  c = version(1);
  c.tensors["__metadata__"] = c.tensors["a"];
  expect_parts(message_of([&] { write_checkpoint(f / "c", c); }), {"__metadata__"});
  c = version(1);
  c.metadata["x"] = "\xff";
  expect_parts(message_of([&] { write_checkpoint(f / "c", c); }), {"UTF-8"});
  EXPECT_EQ(f.count(), 0u);
}

}  // namespace
}  // namespace tutti
