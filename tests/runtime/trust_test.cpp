#include "core/os/trust.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <array>
#include <cstdio>

#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

constexpr uid_t stranger = 12345;

std::string output_of(const std::string& command) {
  std::string text;
  std::array<char, 256> line;
  std::FILE* pipe = popen(command.c_str(), "r");
  while (pipe && std::fgets(line.data(), line.size(), pipe)) text += line.data();
  EXPECT_TRUE(pipe && pclose(pipe) == 0);
  return text;
}

class Trust : public Clean {
 protected:
  void SetUp() override {
    Clean::SetUp();
    folder.plugin("toy");
  }
  std::string problem() {
    Registry registry({folder.path()});
    registry.devices();
    EXPECT_EQ(registry.plugins().size(), 1u);
    if (registry.plugins().size() != 1) return "";
    PluginReport report = registry.plugins()[0];
    EXPECT_EQ(report.loaded, report.problem.empty());
    return report.problem;
  }
  void mode(const std::string& name, mode_t bits) { ASSERT_EQ(chmod((folder / name).c_str(), bits), 0); }
  void owner(const std::string& name, uid_t user, gid_t group) {
    ASSERT_EQ(chown((folder / name).c_str(), user, group), 0);
  }
};

TEST_F(Trust, OwnFilesLoad) { EXPECT_EQ(problem(), ""); }

TEST_F(Trust, AManifestThatAllCanWriteIsNotRead) {
  mode("toy.json", 0666);
  std::string text = problem();
  EXPECT_TRUE(has(text, "not read: file " + folder / "toy.json" + " can be written by everybody"));
  EXPECT_TRUE(has(text, "chmod o-w"));
}

TEST_F(Trust, ALibraryThatAllCanWriteIsNotLoaded) {
  mode("toy.so", 0757);
  EXPECT_TRUE(has(problem(), "not loaded: file " + folder / "toy.so" + " can be written by everybody"));
}

TEST_F(Trust, AFolderThatAllCanWriteIsRefused) {
  mode(".", 0777);
  EXPECT_TRUE(has(problem(), "folder " + folder.path() + " can be written by everybody"));
}

TEST_F(Trust, TheFolderOfALinkedLibraryCounts) {
  PluginFolder elsewhere;
  elsewhere.library("toy");
  fs::remove(folder / "toy.so");
  fs::create_symlink(elsewhere / "toy.so", folder / "toy.so");
  ASSERT_EQ(chmod(elsewhere.path().c_str(), 0777), 0);
  EXPECT_TRUE(has(problem(), "folder " + elsewhere.path() + " can be written by everybody"));
  ASSERT_EQ(chmod(elsewhere.path().c_str(), 0700), 0);
  fs::copy_file(folder / "toy.so.txt", elsewhere / "toy.so.txt");
  EXPECT_EQ(problem(), "");
}

TEST_F(Trust, EveryFolderOnTheWayCounts) {
  PluginFolder above;
  fs::create_directories(above / "a/b");
  PluginFolder& inner = folder;
  for (const char* file : {"toy.json", "toy.so", "toy.so.txt"})
    if (fs::exists(inner / file)) fs::copy_file(inner / file, above / ("a/b/" + std::string(file)));
  auto problem_below = [&] { return Registry({above / "a/b"}).plugins().at(0).problem; };
  EXPECT_EQ(problem_below(), "");
  ASSERT_EQ(chmod((above / "a").c_str(), 0777), 0);
  EXPECT_TRUE(has(problem_below(), "folder " + above / "a" + " can be written by everybody"));
  ASSERT_EQ(chmod((above / "a").c_str(), 01777), 0);  // sticky: nobody can rename what is not theirs
  EXPECT_EQ(problem_below(), "");
  ASSERT_EQ(chmod((above / "a/b").c_str(), 01777), 0);  // but the folder itself is for its owner alone
  EXPECT_TRUE(has(problem_below(), "folder " + above / "a/b" + " can be written by everybody"));
  if (geteuid() != 0) return;
  ASSERT_EQ(chmod((above / "a/b").c_str(), 0755), 0);
  ASSERT_EQ(chmod((above / "a").c_str(), 0755), 0);
  ASSERT_EQ(chown((above / "a").c_str(), stranger, 0), 0);
  EXPECT_TRUE(has(problem_below(), "folder " + above / "a" + " belongs to user 12345"));
}

TEST_F(Trust, LinksInTheMiddleCount) {
  PluginFolder open, elsewhere;
  elsewhere.library("toy");
  fs::create_directory(open / "in");
  fs::create_symlink(elsewhere.path(), open / "in/link");  // toy.so → in/link/toy.so → elsewhere/toy.so
  fs::remove(folder / "toy.so");
  fs::create_symlink(open / "in/link/toy.so", folder / "toy.so");
  fs::copy_file(folder / "toy.so.txt", elsewhere / "toy.so.txt", fs::copy_options::skip_existing);
  EXPECT_EQ(problem(), "");
  ASSERT_EQ(chmod((open / "in").c_str(), 0777), 0);
  EXPECT_TRUE(has(problem(), "folder " + open / "in" + " can be written by everybody"));
  ASSERT_EQ(chmod((open / "in").c_str(), 0755), 0);
  if (geteuid() != 0) return;
  ASSERT_EQ(lchown((open / "in/link").c_str(), stranger, 0), 0);
  EXPECT_TRUE(has(problem(), "link " + open / "in/link" + " belongs to user 12345"));
}

TEST_F(Trust, PipesInPlaceOfFilesAreRefused) {
  fs::remove(folder / "toy.so");
  ASSERT_EQ(mkfifo((folder / "toy.so").c_str(), 0600), 0);
  EXPECT_TRUE(has(problem(), "is not a regular file"));
  fs::remove(folder / "toy.json");
  ASSERT_EQ(mkfifo((folder / "toy.json").c_str(), 0600), 0);
  EXPECT_TRUE(has(problem(), "is not a regular file"));
}

TEST_F(Trust, ForeignFilesAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  owner("toy.so", stranger, 0);
  EXPECT_TRUE(has(problem(), "belongs to user 12345, neither to root nor to you"));
  owner("toy.so", 0, 0);
  owner("toy.json", stranger, 0);
  EXPECT_TRUE(has(problem(), "not read: file " + folder / "toy.json" + " belongs to user 12345"));
  owner("toy.json", 0, 0);
  owner(".", stranger, 0);
  EXPECT_TRUE(has(problem(), "folder " + folder.path() + " belongs to user 12345"));
}

TEST_F(Trust, OnlyTheOwnersPrivateGroupMayWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can choose a file's group";
  mode("toy.so", 0775);
  owner("toy.so", 0, 0);  // root's own group
  EXPECT_EQ(problem(), "");
  owner("toy.so", 0, stranger);
  EXPECT_TRUE(has(problem(), "can be written by group 12345"));
}

TEST_F(Trust, PathVariablesAreIgnoredUnderElevatedPrivileges) {
  struct statvfs mount;
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a set-user-id program of another user";
  if (statvfs(folder.path().c_str(), &mount) != 0 || (mount.f_flag & ST_NOSUID)) GTEST_SKIP() << "the mount is nosuid";
  fs::copy_file(fs::path(FAKES) / "loader_probe", folder / "probe");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  setenv("TUTTI_PLUGIN_PATH", "/from/the/variable", 1);
  const std::string probe = folder / "probe";
  EXPECT_TRUE(has(output_of("'" + probe + "'"), "/from/the/variable\n"));
  owner("probe", stranger, stranger);
  mode("probe", 04755);
  std::string text = output_of("'" + probe + "'");
  EXPECT_FALSE(has(text, "/from/the/variable"));
  EXPECT_TRUE(has(text, "lib/tutti/plugins\n"));
}

TEST_F(Trust, TheNameThatAProgramIsCalledByDoesNotMatter) {
  fs::path decoy = folder.write("decoy", "");
  std::string text = output_of("bash -c 'exec -a \"" + decoy.string() + "\" \"" FAKES "/loader_probe\"'");
  EXPECT_FALSE(has(text, folder.path()));
  EXPECT_TRUE(has(text, "lib/tutti/plugins\n"));
}

}  // namespace
}  // namespace tutti::test
