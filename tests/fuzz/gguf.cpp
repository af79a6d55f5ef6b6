// Language models in GGUF, with their tensors and their tokenizer.
#include "data/files/gguf.h"

#include "core/base/status.h"
#include "data/gguf_tokenizer.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::Gguf gguf(file.path());
    for (const tutti::GgufTensor& t : gguf.tensors()) {
      gguf.read(t);
      if (std::optional<tutti::QuantizedTensor> q = gguf.read_quantized(t)) tutti::dequantized(*q);
    }
    tutti::data::GgufTokenizer tokenizer(gguf);
    auto tokens = tokenizer.encode("Two words, 12 <|im_end|>\n", "a text");
    tokenizer.decode(tokens);
  } catch (const tutti::Error&) {
  }
  return 0;
}
