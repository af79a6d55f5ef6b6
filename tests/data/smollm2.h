// Where the real file of SmolLM2 is, if it is here.
#pragma once
#include <filesystem>
#include <string>

namespace tutti::test {

/// What scripts/smollm2.sh fetched into the source tree; "" where it did not.
inline std::string smollm2() {
  std::string path = std::string(SOURCE_DIR) + "/.deps/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace tutti::test
