// GPT-2's vocab.json and, behind a zero byte, merges.txt.
#include "core/base/status.h"
#include "data/bpe.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tutti::fuzz::Folder folder;
  std::string_view both(reinterpret_cast<const char*>(data), size);
  size_t cut = std::min(both.find('\0'), size);
  folder.write("vocab.json", both.substr(0, cut));
  folder.write("merges.txt", both.substr(std::min(cut + 1, size)));
  try {
    tutti::data::Bpe bpe(folder.path());
    auto tokens = bpe.encode("Two words, 12\n", "a text");
    bpe.decode(tokens);
  } catch (const tutti::Error&) {
  }
  return 0;
}
