#include "data/gguf_tokenizer_write.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "data/bpe.h"
#include "data/gguf_tokenizer.h"
#include "data/gguf_tokenizer_folder.h"

namespace tutti::data {
namespace {

/// Byte-level BPE as GPT-2's.
GgufMetadata byte_level(std::vector<std::string> tokens, const std::vector<std::string>& merges, int64_t vocabulary) {
  tokens.resize(static_cast<size_t>(std::max<int64_t>(vocabulary, std::ssize(tokens))));
  std::vector<int32_t> types(tokens.size(), gguf_token::normal);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].empty()) {
      tokens[i] = fmt::format("[PAD{}]", i);
      types[i] = gguf_token::unused;
    }
  auto end = std::ranges::find(tokens, "<|endoftext|>");
  if (end != tokens.end()) types[static_cast<size_t>(end - tokens.begin())] = gguf_token::control;
  GgufMetadata all = {{"tokenizer.ggml.model", gguf_value(std::string("gpt2"))},
                      {"tokenizer.ggml.pre", gguf_value(std::string("gpt-2"))},
                      {"tokenizer.ggml.tokens", gguf_value(tokens)},
                      {"tokenizer.ggml.token_type", gguf_value(types)},
                      {"tokenizer.ggml.merges", gguf_value(merges)},
                      {"tokenizer.ggml.add_bos_token", gguf_value(false)}};
  // Without ids, llama.cpp would begin and end texts with token 11, which here is a character.
  auto ending = std::ranges::find_if(
      types, [](int32_t type) { return type == gguf_token::control || type == gguf_token::unused; });
  if (ending != types.end())
    for (const char* key : {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"})
      all.emplace_back(key, gguf_value(static_cast<uint32_t>(ending - types.begin())));
  return all;
}

GgufMetadata of_file(const std::string& path) {
  const Gguf file(path);
  GgufMetadata all;
  for (const auto& [key, value] : file.metadata())
    if (key.starts_with("tokenizer.")) all.emplace_back(key, value.bytes());
  return all;
}

}  // namespace

GgufMetadata gguf_tokenizer(const std::string& name, const std::string& characters, int64_t vocabulary,
                            std::vector<std::string>& notes) {
  if (name.starts_with("gguf:")) return of_file(name.substr(5));
  if (name.starts_with("hf:")) return gguf_tokenizer_of_folder(name.substr(3), vocabulary, notes);
  const std::array<std::string, 256>& alphabet = byte_alphabet();
  if (name.starts_with("bpe:")) {
    Bpe bpe(name.substr(4));
    return byte_level(bpe.tokens(), bpe.merges(), vocabulary);
  }
  if (name == "bytes") return byte_level({alphabet.begin(), alphabet.end()}, {}, vocabulary);
  if (name != "chars")
    throw invalid_option("tokenizer", name, "is not written to GGUF files",
                         "use bytes, chars, bpe:FOLDER, hf:FOLDER or gguf:FILE");
  std::vector<std::string> tokens;
  for (char32_t c : code_points(characters, "the vocabulary")) {
    if (c >= 128)
      throw invalid(fmt::format("the model's vocabulary has the character '{}', and GGUF's tokenizers have only ASCII "
                                "characters as single tokens",
                                utf8(c)),
                    "train with another tokenizer: bytes, or bpe:FOLDER");
    tokens.push_back(alphabet[c]);
  }
  return byte_level(std::move(tokens), {}, vocabulary);
}

}  // namespace tutti::data
