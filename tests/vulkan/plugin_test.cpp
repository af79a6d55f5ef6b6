// The plugin where Vulkan is missing or broken: one clear text, no crash, and it recovers.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "backends/vulkan/vulkan.h"
#include "core/os/environment.h"
#include "tests/support/require.h"

namespace tutti::vulkan {
namespace {

namespace fs = std::filesystem;

class VulkanPluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("tutti-vulkan-" + std::to_string(getpid()));
    fs::create_directories(folder);
    static auto& kept = *new std::vector<std::unique_ptr<sdk::Plugin>>;  // like a plugin's library, never unloaded
    plugin = kept.emplace_back(make_plugin()).get();
    plugin->init(sdk::Host());
  }
  void TearDown() override {
    plugin->shutdown();
    os::unset_variable("VK_DRIVER_FILES");
    os::unset_variable("VK_ICD_FILENAMES");
    fs::remove_all(folder);
  }
  /// Makes the loader use this driver file alone (two names: an older and a newer loader's).
  void use_driver(const fs::path& file) {
    os::set_variable("VK_DRIVER_FILES", file.string());
    os::set_variable("VK_ICD_FILENAMES", file.string());
  }
  fs::path file(const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  void expect_unusable() {
    std::vector<sdk::Device> devices = plugin->devices();
    ASSERT_EQ(devices.size(), 1u);
    EXPECT_NE(devices[0].unusable.find("Vulkan"), std::string::npos) << devices[0].unusable;
    EXPECT_NE(devices[0].unusable.find("mesa-vulkan-drivers"), std::string::npos) << devices[0].unusable;
    EXPECT_THROW(plugin->open(0, {}), Error);
    EXPECT_THROW(plugin->open(1, {}), Error);
  }

  fs::path folder;
  sdk::Plugin* plugin = nullptr;
};

TEST_F(VulkanPluginTest, NoDriver) {
  use_driver(folder / "none.json");
  expect_unusable();
}

TEST_F(VulkanPluginTest, BrokenDriverFiles) {
  use_driver(file("text.json", "no JSON at all"));
  expect_unusable();
  use_driver(file("empty.json", "{}"));
  expect_unusable();
}

TEST_F(VulkanPluginTest, DriverLibraryIsNoDriver) {
  std::string library = file("libnothing.so", "not ELF").string();
  use_driver(file("icd.json", R"({"file_format_version": "1.0.0", "ICD": {"library_path": ")" + library +
                                  R"(", "api_version": "1.3.0"}})"));
  expect_unusable();
}

TEST_F(VulkanPluginTest, RecoversWhenADriverComes) {
  use_driver(folder / "none.json");
  expect_unusable();
  os::unset_variable("VK_DRIVER_FILES");
  os::unset_variable("VK_ICD_FILENAMES");
  std::vector<sdk::Device> devices = plugin->devices();
  ASSERT_FALSE(devices.empty());
  if (!devices[0].unusable.empty()) return test::skip_without("vulkan", devices[0].unusable);
  EXPECT_NE(plugin->open(0, {}), nullptr);
  EXPECT_THROW(plugin->open(0, {{"threads", "2"}}), Error);
  EXPECT_THROW(plugin->open(static_cast<uint32_t>(devices.size()), {}), Error);
}

}  // namespace
}  // namespace tutti::vulkan
