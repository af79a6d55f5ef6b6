// A temporary folder that tests fill with fake plugins.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/runtime/registry.h"
#include "tests/support/error_of.h"
#include "tests/support/folder.h"

namespace tutti::test {

namespace fs = std::filesystem;

/// For EXPECT_TRUE: the text holds the part.
inline testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\"\n  does not hold \"" << part << "\"";
}

/// A folder of plugins. A kept listing counts only while this folder and the one above are as they were.
class PluginFolder : public Folder {
 public:
  /// Copies a library of the build, so that every test loads its own.
  fs::path library(const std::string& name, const std::string& fake = "loader_fake") const {
    fs::copy_file(fs::path(FAKES) / (fake + ".so"), *this / (name + ".so"));
    return *this / (name + ".so");
  }
  fs::path manifest(const std::string& name, int priority = 10, const std::string& abi = "[1, 1]") const {
    return write(name + ".json", R"({"tutti_manifest": 1, "name": ")" + name + R"(", "version": "1.0", "abi": )" + abi +
                                     R"(, "kind": "cpu", "priority": )" + std::to_string(priority) +
                                     R"(, "library": ")" + name + R"(.so"})");
  }
  /// A whole fake plugin; `settings` are the lines of fakes/fake.cpp.
  void plugin(const std::string& name, const std::string& settings = "device=cpu\n", int priority = 10) const {
    library(name);
    write(name + ".so.txt", "name=" + name + "\n" + settings);
    manifest(name, priority);
  }
};

/// Clears the variables that steer loading and selection.
class Clean : public testing::Test {
 protected:
  void SetUp() override {
    clear();
    setenv("TUTTI_CACHE", "off", 1);  // nothing is kept of folders that are gone
  }
  void TearDown() override { clear(); }
  static void clear() {
    for (const char* v : {"TUTTI_PLUGIN_PATH", "TUTTI_PLUGINS", "TUTTI_DEVICE", "TUTTI_DEVICE_ORDER", "TUTTI_CACHE",
                          "TUTTI_PROBE_SECONDS"})
      unsetenv(v);
  }
  PluginFolder folder;
};

}  // namespace tutti::test
