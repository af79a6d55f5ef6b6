// Files: locks, replacement, positions, private folders; names with spaces and umlauts.
#include "core/os/file.h"

#include <gtest/gtest.h>
#ifdef _WIN32
#include <windows.h>
// after it
#include <aclapi.h>
#include <sddl.h>
#endif

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/os/folders.h"
#include "core/os/library.h"
#include "core/os/machine.h"
#include "core/os/this_process.h"

namespace tutti::os {
namespace {

namespace fs = std::filesystem;

void open_to_all(const fs::path& path) {
#ifdef _WIN32
  PSECURITY_DESCRIPTOR all = nullptr;
  PACL list = nullptr;
  BOOL there = FALSE, inherited = FALSE;
  ASSERT_TRUE(ConvertStringSecurityDescriptorToSecurityDescriptorW(L"D:(A;;FA;;;WD)", SDDL_REVISION_1, &all, nullptr));
  ASSERT_TRUE(GetSecurityDescriptorDacl(all, &there, &list, &inherited));
  std::wstring name = path.wstring();
  EXPECT_EQ(
      SetNamedSecurityInfoW(name.data(), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, nullptr, nullptr, list, nullptr),
      0u);
  LocalFree(all);
#else
  fs::permissions(path, fs::perms::all);
#endif
}

class File : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(folder_.empty()); }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    int file = open_file(at(name), to_write | make | empty_it);
    EXPECT_GE(file, 0) << std::strerror(errno);
    EXPECT_TRUE(write_all(file, text.data(), text.size()));
    close_file(file);
    return at(name);
  }
  static std::string read(int file) {
    std::string text(100, '\0');
    const int64_t n = read_at(file, text.data(), text.size(), 0);
    EXPECT_GE(n, 0);
    return text.substr(0, static_cast<size_t>(n));
  }
  static std::string read(const std::string& path) {
    int file = open_file(path, to_read);
    if (file < 0) return std::string("? ") + std::strerror(errno);
    std::string text = read(file);
    close_file(file);
    return text;
  }

 private:
  fs::path folder_ = make_folder_in(fs::temp_directory_path(), "tutti os Größe ");
};

TEST_F(File, AFileWithoutANameGrowsAtItsEnd) {
  const int file = open_unnamed_file();
  ASSERT_GE(file, 0) << std::strerror(errno);
  EXPECT_TRUE(write_all(file, "one ", 4));
  EXPECT_EQ(read(file), "one ");
  char first = 0;
  EXPECT_EQ(read_at(file, &first, 1, 0), 1);  // on Windows it moves the position
  EXPECT_TRUE(write_all(file, "two", 3));
  EXPECT_EQ(read(file), "one two");
  close_file(file);
}

TEST_F(File, KeepsItsBytes) {
  const std::string text("a\nb\r\nc\x1a\0d", 10);
  EXPECT_EQ(read(write("with space ü", text)), text);
}

TEST_F(File, IsReplacedWhileItIsOpen) {
  const std::string old = write("state ö", "old"), fresh = write("state.tmp", "new");
  int reader = open_file(old, to_read), writer = open_file(fresh, to_read | to_write);
  ASSERT_GE(reader, 0);
  const bool replaced = replace_file(fresh, old);
  if (!replaced && system_name().ends_with("(Wine)")) GTEST_SKIP() << "Wine 8 does not replace open files";
  ASSERT_TRUE(replaced) << std::strerror(errno);
  EXPECT_EQ(read(reader), "old");
  EXPECT_EQ(read(old), "new");
  EXPECT_FALSE(facts_of(fresh).has_value());
  EXPECT_EQ(errno, ENOENT);
  close_file(writer);
  close_file(reader);
}

TEST_F(File, IsReplaced) {
  const std::string old = write("state ö", "old"), fresh = write("state.tmp", "new");
  int writer = open_file(fresh, to_read | to_write);  // the file that moves stays open
  ASSERT_TRUE(replace_file(fresh, old)) << std::strerror(errno);
  EXPECT_EQ(read(old), "new");
  EXPECT_EQ(read(writer), "new");
  close_file(writer);
}

TEST_F(File, IsRemovedWhileItIsOpen) {
  const std::string path = write("x", "1");
  int file = open_file(path, to_read);
  EXPECT_TRUE(remove_file(path));
  EXPECT_EQ(read(file), "1");
  close_file(file);
  EXPECT_FALSE(remove_file(path));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(File, LocksExcludeEachOther) {
  const std::string path = write("lock", "");
  int a = open_file(path, to_read | to_write), b = open_file(path, to_read | to_write);
  EXPECT_TRUE(lock(a, true));
  EXPECT_TRUE(lock(b, true));
  close_file(a);
  a = open_file(path, to_read | to_write);
  EXPECT_FALSE(lock(a, false));
  EXPECT_EQ(errno, EWOULDBLOCK);
  EXPECT_FALSE(no_locks(errno));
  close_file(b);
  EXPECT_TRUE(lock(a, false));
  close_file(a);
}

TEST_F(File, IsMadeOnce) {
  const std::string path = at("once");
  int file = open_file(path, to_write | make_new);
  ASSERT_GE(file, 0);
  EXPECT_EQ(open_file(path, to_write | make_new), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(open_file(at("missing"), to_read), -1);
  EXPECT_EQ(errno, ENOENT);
  close_file(file);
}

TEST_F(File, GrowsAtItsEnd) {
  const std::string path = write("log", "abc");
  int one = open_file(path, to_write | at_end), two = open_file(path, to_write | at_end);
  EXPECT_EQ(end_of(one), 3);
  EXPECT_EQ(write_some(one, "d", 1), 1);
  EXPECT_EQ(write_some(two, "e", 1), 1);
  EXPECT_EQ(write_some(one, "f", 1), 1);
  EXPECT_EQ(read(path), "abcdef");
  EXPECT_TRUE(resize(one, 4));
  EXPECT_EQ(flush(one), 0);
  close_file(one);
  close_file(two);
  EXPECT_EQ(read(path), "abcd");
}

TEST_F(File, IsReadAndWrittenByPosition) {
  int file = open_file(write("p", "0123456789"), to_read | to_write);
  EXPECT_EQ(write_at(file, "XY", 2, 4), 2);
  char two[2] = {};
  EXPECT_EQ(read_at(file, two, 2, 5), 2);
  EXPECT_EQ(std::string(two, 2), "Y6");
  EXPECT_EQ(read_at(file, two, 2, 10), 0);
  close_file(file);
}

TEST_F(File, FactsTellItApart) {
  const std::string path = write("a", "12345");
  const auto a = facts_of(path), again = facts_of(path), b = facts_of(write("b", "12345"));
  ASSERT_TRUE(a && b && again);
  EXPECT_TRUE(a->regular);
  EXPECT_EQ(a->bytes, 5u);
  EXPECT_EQ(a->number, again->number);
  EXPECT_NE(a->number, b->number);
  EXPECT_EQ(a->device, b->device);
  const auto folder = facts_of(at(""));
  ASSERT_TRUE(folder);
  EXPECT_TRUE(folder->folder);
  EXPECT_FALSE(folder->regular);
}

TEST_F(File, FoldersArePrivate) {
  const std::string path = at("mine");
  EXPECT_FALSE(is_private_folder(path, true));
  ASSERT_TRUE(make_private_folder(path));
  EXPECT_TRUE(make_private_folder(path)) << "one that exists";
  EXPECT_TRUE(is_private_folder(path, false));
  EXPECT_FALSE(is_private_folder(write("file", ""), true));
  open_to_all(path);
  EXPECT_FALSE(is_private_folder(path, true));
}

TEST_F(File, TemporaryOnesHaveNamesOfTheirOwn) {
  std::string a, b;
  int first = make_file_in(at(""), "kernel-", ".c", a), second = make_file_in(at(""), "kernel-", ".c", b);
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  EXPECT_NE(a, b);
  EXPECT_TRUE(fs::path(a).filename().string().starts_with("kernel-") && a.ends_with(".c")) << a;
  close_file(first);
  close_file(second);
}

TEST_F(File, LibrariesAreCompleteOrNot) {
  const std::string own = executable().string();
  EXPECT_EQ(damage_of(write("text", "no library")), "it is not a shared library");
  std::string why;
  EXPECT_EQ(open_library(write("broken" + std::string(library_suffix), "no library"), why), nullptr);
  EXPECT_NE(why, "");
  EXPECT_TRUE(mentions(own, "it is not a shared library"));
}

}  // namespace
}  // namespace tutti::os
