// Without libFuzzer: reads every file of a folder with the target, and some hundred mutations of them, the same in
// every run. Whatever leaves the target ends the process.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

/// A few bytes changed, cut out, repeated or cut off.
std::string mutated(std::string text, std::mt19937& random) {
  constexpr unsigned char telling[] = {0, 1, 0x7f, 0x80, 0xff, '"', '[', '{', '-', '9'};
  for (unsigned changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    size_t at = random() % text.size(), count = 1 + random() % 8;
    switch (random() % 5) {
      case 0: text[at] = static_cast<char>(random()); break;
      case 1: text[at] = static_cast<char>(telling[random() % std::size(telling)]); break;
      case 2: text.erase(at, count); break;
      case 3: text.insert(at, text.substr(random() % text.size(), count)); break;
      default: text.resize(random() % 4 == 0 ? at : text.size());
    }
  }
  return text;
}

void run(const std::string& text) {
  std::vector<uint8_t> exact(text.begin(), text.end());  // sanitizers see its end
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int mutations = 500;
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(count == 2 ? arguments[1] : "", error))
    paths.push_back(entry.path());
  if (error || paths.empty()) return std::fprintf(stderr, "usage: fuzz_NAME FOLDER, with files in it\n"), 2;
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(texts.back());
  }
  run("");
  std::mt19937 random(1);
  for (int k = 0; k < mutations; ++k) run(mutated(texts[random() % texts.size()], random));
  std::printf("%zu files, %d mutations\n", texts.size(), mutations);
}
