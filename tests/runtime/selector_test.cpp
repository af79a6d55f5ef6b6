#include "core/runtime/selector.h"

#include "tests/runtime/plugin_folder.h"

namespace tutti::test {
namespace {

class Selector : public Clean {
 protected:
  Registry& registry() {
    if (!registry_) registry_ = std::make_unique<Registry>(std::vector<fs::path>{folder.path()});
    return *registry_;
  }
  std::string order(const std::string& wanted = "auto") {
    std::string text;
    for (const Ranked& r : rank_devices(registry(), wanted)) text += r.device.id + " ";
    return text;
  }
  std::string why(size_t place, const std::string& wanted = "auto") {
    return rank_devices(registry(), wanted).at(place).why;
  }
  void two_plugins() {
    folder.plugin("fast", "device=discrete|driver too old\ndevice=discrete\n", 50);
    folder.plugin("plain", "device=cpu\n", 10);
  }

 private:
  std::unique_ptr<Registry> registry_;
};

TEST_F(Selector, KindDecidesAndUnusableComesLast) {
  two_plugins();
  EXPECT_EQ(order(), "fast:1 plain:0 fast:0 ");
  EXPECT_EQ(why(0), "discrete before cpu (plain:0)");
  EXPECT_EQ(why(1), "last of the usable devices");
  EXPECT_EQ(why(2), "cannot be used: driver too old");
  Device d = select_device(registry(), "auto");
  EXPECT_EQ(d.id, "fast:1");
  EXPECT_EQ(d.reason, "discrete before cpu (plain:0)");
}

TEST_F(Selector, PriorityDecidesWithinAKindAlone) {
  folder.plugin("card", "device=discrete\n", -10);
  folder.plugin("quick", "device=cpu\n", 100);
  folder.plugin("slow", "device=cpu\n", 10);
  folder.plugin("mock", "device=software\n", 900);
  EXPECT_EQ(order(), "card:0 quick:0 slow:0 mock:0 ");
  EXPECT_EQ(why(1), "cpu like slow:0; priority 100 > 10");
}

TEST_F(Selector, ANameThatIsAKindAndAPluginMeansTheBestOfBoth) {
  folder.plugin("cpu", "device=cpu\n", 50);
  folder.plugin("quick", "device=cpu\n", 100);
  Device d = select_device(registry(), "cpu");
  EXPECT_EQ(d.id, "quick:0");
  EXPECT_EQ(d.reason, "named by device cpu, the best of quick:0, cpu:0");
  EXPECT_EQ(select_device(registry(), "cpu:0").id, "cpu:0");
}

TEST_F(Selector, PatternsFitIdsPluginsAndNames) {
  folder.plugin("a", "device=cpu\ndevice=discrete\ndevice=discrete|no driver\n");
  folder.plugin("b", "device=integrated\n");
  for (const char* text : {"a:*", "A:[01]", "A", "TOY*", "toy device", "*:1"}) {
    Device d = select_device(registry(), text);
    EXPECT_EQ(d.id, "a:1") << text;
  }
  EXPECT_EQ(select_device(registry(), "A:0").id, "a:0");
  EXPECT_EQ(select_device(registry(), "*:0").reason, "named by device *:0, the best of b:0, a:0");
  EXPECT_EQ(select_device(registry(), "integrated").id, "b:0");
  EXPECT_EQ(order("toy*"), "a:1 b:0 a:0 a:2 ");
  EXPECT_TRUE(has(error_of([&] { select_device(registry(), "NVIDIA*"); }),
                  "no device matches 'NVIDIA*' (device NVIDIA*); valid: auto, a:1, b:0, a:0"));
  EXPECT_TRUE(
      has(error_of([&] { select_device(registry(), "a:2*"); }), "device a:2 (device a:2*) cannot be used: no driver"));
  setenv("TUTTI_DEVICE_ORDER", "*:0", 1);
  EXPECT_EQ(order(), "b:0 a:0 a:1 a:2 ");
}

TEST_F(Selector, TheArgumentGoesBeforeAll) {
  two_plugins();
  setenv("TUTTI_DEVICE", "fast", 1);
  setenv("TUTTI_DEVICE_ORDER", "fast,plain", 1);
  EXPECT_EQ(order("plain:0"), "plain:0 fast:1 fast:0 ");
  EXPECT_EQ(why(0, "plain:0"), "named by device plain:0");
  EXPECT_EQ(select_device(registry(), "plain").id, "plain:0");
}

TEST_F(Selector, APluginsNameMeansItsFirstUsableDevice) {
  two_plugins();
  EXPECT_EQ(select_device(registry(), "fast").id, "fast:1");
}

TEST_F(Selector, AListTakesEveryUsableDeviceThatFits) {
  folder.plugin("a", "device=cpu\ndevice=discrete\ndevice=discrete|no driver\n");
  folder.plugin("b", "device=integrated\n");
  auto all = [&](const std::string& wanted) {
    std::string text;
    for (const Device& d : select_devices(registry(), wanted)) text += d.id + " ";
    return text;
  };
  EXPECT_EQ(all("a"), "a:1 a:0 ");
  EXPECT_EQ(all("a:0"), "a:0 ");
  EXPECT_EQ(all("*:0"), "b:0 a:0 ");
  EXPECT_EQ(all("toy*"), "a:1 b:0 a:0 ");
  EXPECT_EQ(all("cpu"), "a:0 ");
  EXPECT_EQ(all("auto"), "a:1 ");
  setenv("TUTTI_DEVICE", "b", 1);
  EXPECT_EQ(all("auto"), "b:0 ");
  EXPECT_EQ(all("a"), "a:1 a:0 ");
  EXPECT_TRUE(has(error_of([&] { select_devices(registry(), "a:2"); }), "cannot be used: no driver"));
  EXPECT_TRUE(has(error_of([&] { select_devices(registry(), "c"); }), "unknown device 'c'"));
}

TEST_F(Selector, TheVariableNamesADevice) {
  two_plugins();
  setenv("TUTTI_DEVICE", "plain", 1);
  EXPECT_EQ(order(), "plain:0 fast:1 fast:0 ");
  EXPECT_EQ(select_device(registry(), "auto").reason, "named by TUTTI_DEVICE=plain");
  EXPECT_EQ(select_device(registry(), "fast:1").id, "fast:1");
  setenv("TUTTI_DEVICE", "nothing", 1);
  EXPECT_TRUE(has(error_of([&] { select_device(registry(), "auto"); }), "'nothing' (TUTTI_DEVICE=nothing)"));
  EXPECT_EQ(order(), "fast:1 plain:0 fast:0 ");  // a listing still works
}

TEST_F(Selector, TheUsersOrderGoesBeforePriority) {
  two_plugins();
  folder.plugin("third", "device=cpu\n", 90);
  setenv("TUTTI_DEVICE_ORDER", "absent, plain,fast:1", 1);
  EXPECT_EQ(order(), "plain:0 fast:1 third:0 fast:0 ");
  EXPECT_EQ(why(0), "position 2 in TUTTI_DEVICE_ORDER; fast:1 is at 3");
  EXPECT_EQ(why(1), "position 3 in TUTTI_DEVICE_ORDER; third:0 is not in it");
}

TEST_F(Selector, KindThenIdBreakTies) {
  folder.plugin("soft", "device=software\n");
  folder.plugin("b", "device=cpu\ndevice=integrated\n");
  folder.plugin("a", "device=other\ndevice=cpu\ndevice=discrete\n");
  EXPECT_EQ(order(), "a:2 b:1 a:1 b:0 a:0 soft:0 ");
  EXPECT_EQ(why(0), "discrete before integrated (b:1)");
  EXPECT_EQ(why(2), "cpu and priority like b:0; its id comes first");
}

TEST_F(Selector, IndicesAreOrderedAsNumbers) {
  std::string settings;
  for (int i = 0; i < 11; ++i) settings += "device=cpu\n";
  folder.plugin("many", settings);
  auto ranked = rank_devices(registry(), "auto");
  EXPECT_EQ(ranked[2].device.id, "many:2");
  EXPECT_EQ(ranked[10].device.id, "many:10");
}

TEST_F(Selector, TheOrderOfFoldersDoesNotMatter) {
  PluginFolder other;
  folder.plugin("a");
  other.plugin("b");
  Registry one({folder.path(), other.path()}), two({other.path(), folder.path()});
  EXPECT_EQ(select_device(one, "auto").id, "a:0");
  EXPECT_EQ(select_device(two, "auto").id, "a:0");
}

TEST_F(Selector, OneDeviceIsTheOnlyOne) {
  folder.plugin("toy");
  EXPECT_EQ(why(0), "the only usable device");
}

TEST_F(Selector, TheSameHardwareIsNoted) {
  folder.plugin("a", "device=discrete||0000:65:00.0|1\n", 30);
  folder.plugin("b", "device=discrete||0000:65:00.0|\n", 20);   // no uuid: the PCI address tells
  folder.plugin("c", "device=discrete||0000:65:00.0|2\n", 10);  // both uuids differ: they decide
  EXPECT_TRUE(has(why(0), "(the same hardware as b:0)"));
  EXPECT_TRUE(has(why(1), "(the same hardware as a:0)"));
  EXPECT_FALSE(has(why(2), "the same hardware"));
  auto ranked = rank_devices(registry(), "auto");
  EXPECT_EQ(ranked[0].hardware, "uuid:01000000000000000000000000000000");
  EXPECT_EQ(ranked[1].hardware, ranked[0].hardware);
  EXPECT_EQ(ranked[2].hardware, "uuid:02000000000000000000000000000000");
}

TEST_F(Selector, AnUnknownDeviceListsTheValidOnes) {
  two_plugins();
  std::string error = error_of([&] { select_device(registry(), "plian:0"); });
  EXPECT_TRUE(has(error, "unknown device 'plian:0'"));
  EXPECT_TRUE(has(error, "valid: auto, fast:1, plain:0"));
  EXPECT_TRUE(has(error, "did you mean plain:0?"));
  EXPECT_TRUE(has(error_of([&] { select_device(registry(), "plain:7"); }), "unknown device 'plain:7'"));
  EXPECT_TRUE(has(error_of([&] { select_device(registry(), "zzzzzzzzzz"); }), "`tutti devices` lists"));
}

TEST_F(Selector, AnUnusableDeviceGivesItsReason) {
  two_plugins();
  std::string error = error_of([&] { select_device(registry(), "fast:0"); });
  EXPECT_TRUE(
      has(error, "device fast:0 (device fast:0) cannot be used: driver too old | usable here: fast:1, plain:0"));
}

TEST_F(Selector, ADeviceOfABrokenPluginTellsWhatIsBroken) {
  folder.plugin("toy");
  folder.plugin("bad", "fault=init error\n");
  EXPECT_TRUE(
      has(error_of([&] { select_device(registry(), "bad:0"); }), "bad.json cannot be used: init: no toy driver"));
}

TEST_F(Selector, NoPluginListsEveryPathAndPluginTried) {
  folder.write("broken.json", "{");
  folder.plugin("empty", "");
  Registry registry({folder / "nowhere", folder.path()});
  std::string error = error_of([&] { select_device(registry, "auto"); });
  EXPECT_TRUE(has(error, "searched " + folder / "nowhere" + " (no such folder)"));
  EXPECT_TRUE(has(error, "searched " + folder.path() + "\n"));
  EXPECT_TRUE(has(error, "broken.json: is not JSON"));
  EXPECT_TRUE(has(error, "empty.json: loaded"));
  EXPECT_TRUE(has(error, "TUTTI_PLUGIN_PATH"));
}

TEST_F(Selector, NoUsableDeviceListsTheReasons) {
  folder.plugin("toy", "device=cpu|on holiday\n");
  std::string error = error_of([&] { select_device(registry(), "auto"); });
  EXPECT_TRUE(has(error, "no device can be used:\n  toy:0: on holiday"));
}

}  // namespace
}  // namespace tutti::test
