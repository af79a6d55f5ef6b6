// GPT-2's vocab.json and, behind a zero byte, merges.txt.
#include <cstdint>
#include <string_view>

#include "core/base/status.h"
#include "data/bpe.h"
#include "tests/support/folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::test::Folder folder;
  std::string_view both(reinterpret_cast<const char*>(data), size);
  size_t cut = std::min(both.find('\0'), size);
  folder.write("vocab.json", std::string(both.substr(0, cut)));
  folder.write("merges.txt", std::string(both.substr(std::min(cut + 1, size))));
  try {
    tutti::data::Bpe bpe(folder.path());
    auto tokens = bpe.encode("Two words, 12\n", "a text");
    bpe.decode(tokens);
  } catch (const tutti::Error&) {
  }
  return 0;
}
