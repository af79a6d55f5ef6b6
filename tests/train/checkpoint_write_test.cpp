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

#include "data/files/checkpoint.h"
#include "data/files/file_lock.h"
#include "tests/train/files.h"

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

// The files of a folder that end so.
std::vector<std::filesystem::path> files_with(const Folder& f, const std::string& end) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(f.path()))
    if (entry.path().string().ends_with(end)) found.push_back(entry.path());
  return found;
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
  auto left = files_with(f, ".tmp");
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(std::filesystem::file_size(left[0]), 100000u);  // half written, beside the whole one
  std::filesystem::rename(f / "c.lock", f / "kept");        // of another file, the same is left alone
  write_checkpoint(f / "c2", version(3));
  EXPECT_TRUE(std::filesystem::exists(left[0]));
  std::filesystem::rename(f / "kept", f / "c.lock");
  write_checkpoint(f / "c", version(3));  // and the next one removes it
  EXPECT_EQ(version_of(f / "c"), 3);
  EXPECT_EQ(f.count(), 2u);
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
    expect_parts(error_of(f / "c"), {f / "c", "Permission denied"});
    ASSERT_EQ(chmod(f.path().c_str(), 0700), 0);
  }
  EXPECT_EQ(f.count(), 0u);
}

TEST(CheckpointWrite, TwoProcessesDoNotMix) {
  Folder f;
  int other = open((f / "c.lock").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(other, 0);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  put(f / "c.0123456789abcdef.tmp", "half");
  expect_parts(message_of([&] { write_checkpoint(f / "c", version(1)); }), {f / "c", "another process"});
  EXPECT_EQ(f.count(), 2u);  // they are the other's
  close(other);
  write_checkpoint(f / "c", version(1));
  EXPECT_EQ(version_of(f / "c"), 1);
  EXPECT_EQ(f.count(), 1u);
}

// A lock that is held for a whole run lets the run itself save, and nobody else.
TEST(CheckpointWrite, ALockIsSharedWithinTheProcess) {
  Folder f;
  std::filesystem::create_symlink("c", f / "link");
  auto in_another_process = [&] {
    return in_child([&] {
      int go = open((f / "c.lock").c_str(), O_RDONLY);
      return go >= 0 && flock(go, LOCK_EX | LOCK_NB) != 0 ? 1 : 0;
    });
  };
  {
    FileLock run(f / "link");
    FileLock again(f / "c");
    for (int i = 0; i < 3; ++i) {
      write_checkpoint(f / "c", version(i));
      EXPECT_NE(in_another_process(), 0);
    }
  }
  EXPECT_EQ(in_another_process(), 0);
  EXPECT_EQ(f.count(), 2u);
}

TEST(CheckpointWrite, ThreadsThatSaveOneFileTakeTurns) {
  Folder f;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) write_checkpoint(f / "c", version(t));
    });
  for (std::thread& t : threads) t.join();
  version_of(f / "c");
  EXPECT_EQ(f.count(), 1u);
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
