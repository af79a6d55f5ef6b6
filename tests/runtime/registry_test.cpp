#include "core/runtime/registry.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/runtime/loader.h"
#include "core/runtime/selector.h"
#include "core/runtime/session.h"
#include "core/runtime/trace_topics.h"
#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

class Loader : public Clean {
 protected:
  /// The problem of the one plugin in the folder.
  std::string problem() {
    Registry registry({folder.path()});
    registry.devices();
    EXPECT_EQ(registry.plugins().size(), 1u);
    if (registry.plugins().size() != 1) return "";
    EXPECT_EQ(registry.plugins()[0].loaded, registry.plugins()[0].problem.empty());
    EXPECT_EQ(registry.table(registry.plugins()[0].name) != nullptr, registry.plugins()[0].loaded);
    return registry.plugins()[0].problem;
  }
  std::string problem_of_fault(const std::string& fault) {
    folder.plugin("toy", "device=cpu\nfault=" + fault + "\n");
    return problem();
  }
};

TEST_F(Loader, AGoodPluginLoadsAndListsItsDevices) {
  folder.plugin("toy", "device=cpu||0000:65:00.0|7\ndevice=discrete|the driver is too old\n", 33);
  Registry registry({folder.path()});
  ASSERT_EQ(registry.plugins().size(), 1u);
  EXPECT_FALSE(registry.plugins()[0].loaded);
  auto devices = registry.devices();  // the plugin's TuttiDevice is larger than ours
  PluginReport report = registry.plugins()[0];
  EXPECT_TRUE(report.loaded);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.manifest, folder / "toy.json");
  EXPECT_EQ(report.library, folder / "toy.so");
  EXPECT_EQ(report.version, "1.0");
  EXPECT_NE(registry.table("toy"), nullptr);
  EXPECT_EQ(registry.table("other"), nullptr);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].id, "toy:0");
  EXPECT_EQ(devices[0].kind, DeviceKind::cpu);
  EXPECT_EQ(devices[0].name, "Toy device");
  EXPECT_EQ(devices[0].pci, "0000:65:00.0");
  EXPECT_EQ(devices[0].uuid[0], 7);
  EXPECT_EQ(devices[0].priority, 33);
  EXPECT_EQ(devices[0].memory_free, 900u);
  EXPECT_EQ(devices[0].unusable, "");
  EXPECT_EQ(devices[1].id, "toy:1");
  EXPECT_EQ(devices[1].index, 1u);
  EXPECT_EQ(devices[1].kind, DeviceKind::discrete);
  EXPECT_EQ(devices[1].unusable, "the driver is too old");
}

TEST_F(Loader, TwoRegistriesShareOneLoadedLibrary) {
  folder.plugin("toy");
  Registry first({folder.path()}), second({folder.path()});
  EXPECT_EQ(first.table("toy"), second.table("toy"));
}

TEST_F(Loader, AManifestOfAnotherAbiIsReportedAndNeverLoaded) {
  folder.write("toy.so", "not even a library: loading it would fail with another message");
  folder.manifest("toy", 10, "[2, 9]");
  EXPECT_TRUE(has(problem(), "not loaded: its manifest lists ABI versions 2 to 9, but this engine supports 1 to 1"));
}

TEST_F(Loader, NegotiationCanFail) {
  EXPECT_TRUE(has(problem_of_fault("negotiate null"), "supports ABI versions 3 to 4, but this engine supports 1 to 1"));
}

TEST_F(Loader, APluginThatDeclinesIsNoMismatchOfVersions) {
  std::string declined = problem_of_fault("negotiate decline");
  EXPECT_TRUE(has(declined, "declines this engine, although both support ABI version 1")) << declined;
}

TEST_F(Loader, NegotiationCanThrow) {
  EXPECT_TRUE(has(problem_of_fault("negotiate throw"), "threw an exception across the C boundary: cannot talk"));
}

TEST_F(Loader, InitCanFail) { EXPECT_EQ(problem_of_fault("init error"), "init: no toy driver found"); }

TEST_F(Loader, InitCanFailWithoutAMessage) {
  EXPECT_TRUE(has(problem_of_fault("init mute"), "init: failed with code 5 (DEVICE_LOST) and no message"));
}

TEST_F(Loader, InitRunsOnceEvenWhenItFailed) {
  folder.plugin("toy", "fault=init error\n");
  Manifest m = read_manifest(folder / "toy.json");
  EXPECT_EQ(error_of([&] { load_plugin(m); }, Code::internal), "init: no toy driver found");
  folder.write("toy.so.txt", "name=toy\n");  // would work now
  EXPECT_EQ(error_of([&] { load_plugin(m); }, Code::internal), "init: no toy driver found");
}

TEST_F(Loader, InitCanThrow) {
  EXPECT_EQ(problem_of_fault("init throw"), "init: the plugin threw an exception across the C boundary: a toy broke");
}

TEST_F(Loader, InitCanThrowAnything) {
  EXPECT_EQ(problem_of_fault("init throw int"), "init: the plugin threw an exception across the C boundary");
}

TEST_F(Loader, ASmallTableIsRefused) {
  EXPECT_EQ(problem_of_fault("small table"),
            "its function table has 100 bytes, but at least " + std::to_string(sizeof(TuttiPlugin)) + " are needed");
}

TEST_F(Loader, ATableOfAnotherVersionIsRefused) {
  EXPECT_EQ(problem_of_fault("future table"), "its function table has ABI version 2, but this engine supports 1 to 1");
}

TEST_F(Loader, AMissingFunctionIsNamed) {
  EXPECT_EQ(problem_of_fault("null function"), "its function table lacks the function compile");
}

TEST_F(Loader, APluginWithoutNameIsRefused) {
  EXPECT_EQ(problem_of_fault("no name"), "has the name \"\", but its manifest has the name \"toy\"");
}

TEST_F(Loader, AnotherNameThanTheManifestsIsRefused) {
  folder.plugin("toy", "name=impostor\n");
  EXPECT_EQ(problem(), "has the name \"impostor\", but its manifest has the name \"toy\"");
}

TEST_F(Loader, AMissingLibraryIsNamed) {
  folder.manifest("toy");
  EXPECT_TRUE(has(problem(), folder / "toy.so" + ": No such file"));
}

TEST_F(Loader, ALibraryThatIsNoneIsSaidToBeNone) {
  folder.write("toy.so", "text");
  folder.manifest("toy");
  EXPECT_TRUE(has(problem(), "cannot be loaded: it is not a shared library"));
}

TEST_F(Loader, ALibraryThatIsCutOffIsNotMapped) {
  fs::path library = folder.library("toy");
  folder.manifest("toy");
  auto whole = fs::file_size(library);
  for (uintmax_t size : {whole / 2, uintmax_t{3000}, uintmax_t{500}, uintmax_t{100}, uintmax_t{20}, uintmax_t{0}}) {
    fs::resize_file(library, size);
    EXPECT_TRUE(has(problem(), size < 64 ? "it is not a shared library" : "it is truncated")) << size;
  }
}

TEST_F(Loader, AMissingSymbolIsNamed) {
  folder.library("toy", "loader_no_symbol");
  folder.manifest("toy");
  EXPECT_EQ(problem(), "library " + folder / "toy.so" + " does not export the symbol tutti_plugin");
}

TEST_F(Loader, AnUndefinedSymbolGivesTheLoadersReason) {
  folder.library("toy", "loader_undefined");
  folder.manifest("toy");
  EXPECT_TRUE(has(problem(), "undefined symbol: function_that_nobody_has"));
}

TEST_F(Loader, ABrokenManifestDoesNotHideTheOthers) {
  folder.plugin("toy");
  folder.write("broken.json", "{");
  folder.write("notes.txt", "no manifest");
  Registry registry({folder.path()});
  registry.devices();
  ASSERT_EQ(registry.plugins().size(), 2u);
  EXPECT_TRUE(has(registry.plugins()[0].problem, "broken.json: is not JSON"));
  EXPECT_EQ(registry.plugins()[0].library, "");
  EXPECT_TRUE(registry.plugins()[1].loaded);
}

TEST_F(Loader, OfTwoWithOneNameTheFirstWins) {
  PluginFolder second;
  folder.plugin("toy", "device=cpu\n", 1);
  second.plugin("toy", "device=cpu\n", 2);
  Registry registry({folder.path(), second.path(), folder.path()});
  ASSERT_EQ(registry.devices().size(), 1u);
  ASSERT_EQ(registry.folders().size(), 2u);
  ASSERT_EQ(registry.plugins().size(), 2u);
  EXPECT_TRUE(registry.plugins()[0].loaded);
  EXPECT_FALSE(registry.plugins()[1].loaded);
  EXPECT_TRUE(has(registry.plugins()[1].problem, "duplicate of " + folder / "toy.json"));
  ASSERT_EQ(registry.devices().size(), 1u);
  EXPECT_EQ(registry.devices()[0].priority, 1);
}

TEST_F(Loader, DevicesCanFailAndOthersStay) {
  folder.plugin("bad", "fault=devices error\n");
  folder.plugin("odd", "device=cpu\nfault=devices stride\n");
  folder.plugin("toy");
  Registry registry({folder.path()});
  auto devices = registry.devices();
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].id, "toy:0");
  EXPECT_EQ(registry.plugins()[0].problem, "devices: the bus is gone");
  EXPECT_TRUE(has(registry.plugins()[1].problem, "devices: gave a malformed list (1 devices of 8 bytes)"));
  for (const char* name : {"bad", "odd"}) EXPECT_EQ(registry.table(name), nullptr);
  EXPECT_FALSE(registry.plugins()[0].loaded || registry.plugins()[1].loaded);
}

TEST_F(Loader, APluginThatTakesItsProcessDownIsNamedAndOthersStay) {
  setenv("TUTTI_PROBE_SECONDS", "0.3", 1);
  folder.plugin("crash", "device=cpu\nfault=devices crash\n");
  folder.plugin("deaf", "device=cpu\nfault=devices deaf\n");
  folder.plugin("end", "device=cpu\nfault=devices exit\n");
  folder.plugin("hang", "device=cpu\nfault=devices hang\n");
  folder.plugin("init", "device=cpu\nfault=init crash\n");
  folder.plugin("toy");
  Registry registry({folder.path()});
  ASSERT_EQ(registry.devices().size(), 1u);
  EXPECT_EQ(registry.devices()[0].id, "toy:0");
  EXPECT_TRUE(has(registry.plugins()[0].problem, "devices: the plugin crashed: signal 11 (SIGSEGV"));
  EXPECT_EQ(registry.plugins()[2].problem, "devices: the plugin ended its process with exit code 0");
  for (size_t i : {1, 3})
    EXPECT_TRUE(has(registry.plugins()[i].problem, "devices: no answer within 0.3 s (TUTTI_PROBE_SECONDS"));
  EXPECT_TRUE(has(registry.plugins()[4].problem, "load: the plugin crashed: signal 11"));
  for (const char* name : {"crash", "deaf", "end", "hang", "init"}) EXPECT_EQ(registry.table(name), nullptr);
}

TEST_F(Loader, OnlyPluginsThatAreUsedAreLoadedIntoThisProcess) {
  folder.plugin("one");
  folder.plugin("two");
  Registry registry({folder.path()});
  ASSERT_EQ(registry.devices("one").size(), 1u);
  EXPECT_TRUE(registry.plugins()[0].loaded);
  EXPECT_FALSE(registry.plugins()[1].loaded);
  EXPECT_EQ(registry.plugins()[1].problem, "");
  auto mapped = [&](const char* library) {
    std::ifstream maps("/proc/self/maps");
    std::string all(std::istreambuf_iterator<char>(maps), {});
    return all.find(folder / library) != std::string::npos;
  };
  registry.devices();
  EXPECT_FALSE(mapped("one.so") || mapped("two.so"));
  registry.table("one");
  EXPECT_TRUE(mapped("one.so"));
  EXPECT_FALSE(mapped("two.so"));
}

TEST_F(Loader, AnOpenThatCrashesOrHangsIsFoundOutApart) {
  setenv("TUTTI_PROBE_SECONDS", "0.3", 1);
  folder.plugin("crash", "device=cpu\nfault=open crash\n");
  folder.plugin("hang", "device=cpu\nfault=open hang\n");
  folder.plugin("toy", "device=cpu\n", -5);
  folder.plugin("refuses", "device=cpu\nfault=open error\n");  // which is an answer
  Registry registry({folder.path()});
  auto devices = registry.devices();
  ASSERT_EQ(devices.size(), 4u);
  EXPECT_TRUE(has(registry.try_open(devices[0]), "open: the plugin crashed: signal 11 (SIGSEGV"));
  EXPECT_TRUE(has(registry.try_open(devices[1]), "open: no answer within 0.3 s"));
  EXPECT_EQ(registry.try_open(devices[2]), "");
  EXPECT_EQ(registry.try_open(devices[3]), "");
}

TEST_F(Loader, ALibraryWithoutManifestIsToldUnlessItIsNoPlugin) {
  folder.library("toy");
  folder.write("dependency.so", "a library that a plugin is linked to");
  Registry registry({folder.path()});
  ASSERT_EQ(registry.plugins().size(), 1u);
  PluginReport report = registry.plugins()[0];
  EXPECT_EQ(report.library, folder / "toy.so");
  EXPECT_EQ(report.title(), folder / "toy.so");
  EXPECT_TRUE(has(report.problem, "toy.so has no manifest: a file NAME.json in the same folder must name it"));
}

TEST_F(Loader, AnIncompatiblePluginShadowsNoOther) {
  PluginFolder second, third;
  folder.plugin("toy");
  folder.manifest("toy", 1, "[2, 9]");            // of another ABI
  second.plugin("toy", "fault=init error\n", 2);  // does not start
  third.plugin("toy", "device=cpu\n", 3);
  Registry registry({folder.path(), second.path(), third.path()});
  ASSERT_EQ(registry.devices().size(), 1u);
  EXPECT_EQ(registry.devices()[0].priority, 3);
  EXPECT_NE(registry.table("toy"), nullptr);
  EXPECT_TRUE(has(registry.plugins()[0].problem, "ABI versions 2 to 9"));
  EXPECT_EQ(registry.plugins()[1].problem, "init: no toy driver found");
  EXPECT_TRUE(registry.plugins()[2].loaded);
}

TEST_F(Loader, AFifoIsNoManifestAndNoLibrary) {
  ASSERT_EQ(mkfifo((folder / "pipe.json").c_str(), 0600), 0);
  folder.manifest("toy");
  ASSERT_EQ(mkfifo((folder / "toy.so").c_str(), 0600), 0);
  Registry registry({folder.path()});
  ASSERT_EQ(registry.plugins().size(), 2u);
  for (const PluginReport& p : registry.plugins()) EXPECT_TRUE(has(p.problem, "is not a regular file"));
}

TEST(TraceTopics, UnknownOnesAreAnsweredWithTheValidOnes) {
  EXPECT_EQ(wrong_topics("kernels,mine,all,graph,texts", {"mine"}), "");
  EXPECT_EQ(wrong_topics("", {}), "");
  EXPECT_EQ(wrong_topics("kernels,nonsense,Graph", {"mine"}),
            "TUTTI_TRACE=kernels,nonsense,Graph: unknown topic nonsense, Graph; "
            "valid: all, dispatch, graph, kernels, texts, mine");
}

/// With a cache of listings.
class Kept : public Loader {
 protected:
  void SetUp() override {
    Loader::SetUp();
    setenv("TUTTI_CACHE", (cache / "blobs").c_str(), 1);
  }
  std::vector<Device> list(bool renewed = false) {
    Registry registry({folder.path()});
    if (renewed) registry.renew();
    return registry.devices();
  }
  Folder cache;
};

TEST_F(Kept, AListingIsKeptWhileThePluginsFilesAndTheEnvironmentStay) {
  folder.plugin("toy");
  ASSERT_EQ(list().size(), 1u);
  folder.write("toy.so.txt", "name=toy\ndevice=cpu\ndevice=cpu\n");  // a second device appears
  EXPECT_EQ(list().size(), 1u);
  setenv("SOME_DRIVERS_VARIABLE", "1", 1);
  EXPECT_EQ(list().size(), 2u);
  unsetenv("SOME_DRIVERS_VARIABLE");
  EXPECT_EQ(list().size(), 2u);  // of one plugin the last listing is kept
  folder.write("toy.so.txt", "name=toy\ndevice=cpu\n");
  fs::last_write_time(folder / "toy.so", fs::file_time_type::clock::now());
  EXPECT_EQ(list().size(), 1u);
  folder.write("toy.so.txt", "name=toy\ndevice=cpu\ndevice=cpu\n");
  EXPECT_EQ(list(true).size(), 2u);
  EXPECT_EQ(list().size(), 2u);  // and was kept
}

TEST_F(Kept, ARefusalIsNeverOfAKeptListing) {
  folder.plugin("toy", "device=cpu|no driver\n");
  ASSERT_EQ(list().size(), 1u);
  folder.write("toy.so.txt", "name=toy\ndevice=cpu\ndevice=cpu\n");  // the driver was installed
  Registry one({folder.path()}), two({folder.path()});
  EXPECT_EQ(select_device(one, "toy:0").id, "toy:0");
  folder.write("toy.so.txt", "name=toy\ndevice=cpu|no driver\n");
  EXPECT_EQ(select_device(two, "auto").id, "toy:0");  // kept
  EXPECT_TRUE(has(
      error_of([&] { Session(two, two.devices()[0]); }, Code::device_lost),
      "device toy:0 (Toy device) is no longer present, or has changed since it was listed | run the command again"));
  Registry three({folder.path()});
  EXPECT_TRUE(has(error_of([&] { select_device(three, "auto"); }), "toy:0: no driver"));
}

TEST_F(Kept, AFailureIsKeptTooAndAnOpenThatWentWellIsNotTriedAgain) {
  setenv("TUTTI_PROBE_SECONDS", "0.3", 1);
  folder.plugin("hang", "fault=devices hang\n");
  folder.plugin("toy");
  ASSERT_EQ(list().size(), 1u);
  Registry first({folder.path()});
  EXPECT_EQ(first.try_open(first.devices()[0]), "");
  folder.write("toy.so.txt", "name=toy\ndevice=cpu\nfault=open crash\n");
  folder.write("hang.so.txt", "name=hang\ndevice=cpu\n");
  Registry second({folder.path()});
  EXPECT_EQ(second.devices().size(), 1u);
  EXPECT_TRUE(has(second.plugins()[0].problem, "no answer"));
  EXPECT_EQ(second.try_open(second.devices()[0]), "");
}

TEST_F(Loader, TheVariableExcludesPluginsBeforeTheyAreLoaded) {
  folder.plugin("one");
  folder.write("two.so", "loading this would fail");
  folder.manifest("two");
  auto problems = [&](const char* value) {
    setenv("TUTTI_PLUGINS", value, 1);
    Registry registry({folder.path()});
    registry.devices();
    return std::pair{registry.plugins().at(0).problem, registry.plugins().at(1).problem};
  };
  EXPECT_EQ(problems("-two"), std::pair(std::string(), std::string("excluded by TUTTI_PLUGINS=-two")));
  EXPECT_EQ(problems("one"), std::pair(std::string(), std::string("excluded by TUTTI_PLUGINS=one")));
  EXPECT_EQ(problems("x,-y").first, "excluded by TUTTI_PLUGINS=x,-y");
  EXPECT_EQ(problems("").first, "");
}

TEST_F(Loader, MissingAndEmptyFoldersAreKeptForMessages) {
  Registry registry({folder / "none", folder.path()});
  EXPECT_EQ(registry.folders(), (std::vector<fs::path>{folder / "none", folder.path()}));
  EXPECT_TRUE(registry.plugins().empty());
  EXPECT_TRUE(registry.devices().empty());
}

TEST_F(Loader, TheSearchPathStartsWithTheVariableAndNeverHoldsTheWorkingDirectory) {
  fs::create_symlink(folder.path(), folder / "link");
  setenv("TUTTI_PLUGIN_PATH", (":plugins:.:" + folder.path() + "::" + folder / "link").c_str(), 1);
  auto path = plugin_search_path();
  ASSERT_GE(path.size(), 2u);
  EXPECT_EQ(path[0], folder.path());
  auto expected = fs::canonical("/proc/self/exe").parent_path().parent_path() / "lib/tutti/plugins";
  EXPECT_EQ(path[1], fs::weakly_canonical(expected));
  for (const auto& entry : path) {
    EXPECT_TRUE(entry.is_absolute());
    EXPECT_NE(entry, fs::current_path());
  }
}

using LoaderDeathTest = Loader;

TEST_F(LoaderDeathTest, PluginsAreInitialisedOnceAndShutDownAtTheEnd) {
  folder.plugin("toy", "loud=1\n");
  EXPECT_EXIT(
      {
        Registry first({folder.path()});
        Registry second({folder.path()});
        first.table("toy");
        second.table("toy");
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^tutti warning \\[toy\\] toy: good bye after one init\n$");
}

}  // namespace
}  // namespace tutti::test
