// Hugging Face's tokenizer.json.
#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "data/hf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::data::HfTokenizer tokenizer(std::string(reinterpret_cast<const char*>(data), size), "tokenizer.json");
    auto tokens = tokenizer.encode("Two wörds, 12 <s> \xe4\xbd\xa0\xe5\xa5\xbd\n", "a text");
    tokenizer.decode(tokens);
  } catch (const tutti::Error&) {
  }
  return 0;
}
