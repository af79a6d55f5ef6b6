// Texts: a file tokenized by bytes, characters or a BPE vocabulary, or learnable synthetic tokens.
#include <fmt/format.h>

#include <filesystem>

#include "core/base/option_text.h"
#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/bpe.h"
#include "data/file.h"
#include "data/form.h"
#include "data/gguf_tokenizer.h"
#include "data/hf_tokenizer.h"
#include "data/text.h"
#include "data/tokenizer.h"

namespace tutti::data {
namespace {

constexpr uint32_t successor_stream = 0x64617405, choice_stream = 0x64617406;
constexpr int64_t usual_context = 256;

/// Splits the tokens; the last tenth is the test text.
Sources cut(const std::string& name, const std::vector<int32_t>& tokens, const OpenOptions& o, int64_t vocabulary,
            const std::string& characters = "") {
  int64_t context = o.context > 0 ? o.context : usual_context;
  auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() - tokens.size() / 10);
  if (static_cast<int64_t>(tokens.end() - middle) <= context) {
    if (static_cast<int64_t>(tokens.size()) <= 2 * context + 2)
      throw invalid(
          fmt::format("text {} has only {} tokens: training and test text each need more than the context of {}", name,
                      tokens.size(), context),
          "use a smaller " + option_text("context") + ", or a longer text");
    middle = tokens.end() - (context + 1);
  }
  auto stream = [&](const char* half, auto first, auto last) {
    return std::make_shared<TokenStream>(name + half, std::vector<int32_t>(first, last), context, vocabulary,
                                         characters);
  };
  return {.train = stream("/train", tokens.begin(), middle), .test = stream("/test", middle, tokens.end())};
}

Sources open_text(const std::string& spec, const OpenOptions& o) {
  std::string path = spec.substr(spec.find(':') + 1), text = read_file(path, "give a text file: text:FILE");
  if (text.empty()) throw invalid(fmt::format("{}: the text is empty", path), "give a file that contains text");
  std::string name = std::filesystem::path(path).filename().string();
  std::string characters = o.tokenizer != "chars" ? ""
                           : o.vocabulary.empty() ? Characters(text, path).vocabulary()
                                                  : o.vocabulary;
  std::unique_ptr<Tokenizer> t = open_tokenizer(o.tokenizer, characters);
  return cut(name, t->encode(text, path), o, t->size(), characters);
}

int64_t number(const std::string& spec, const std::string& text) {
  int64_t n = parse_number<int64_t>(text).value_or(0);
  if (n < 2 || n > int64_t{1} << 31)
    throw invalid(fmt::format("data '{}': '{}' is not an integer from 2 to 2^31", spec, text),
                  use_one_of_the_forms(spec));
  return n;
}

/// Every token has four random successors; each next token is drawn from them.
Sources make_up(const std::string& spec, const OpenOptions& o) {
  std::vector<std::string> parts = fields(spec, ':');
  if (parts.size() < 2 || parts.size() > 3)
    throw invalid(fmt::format("data '{}': expected synthetic-text:VOCABULARY[:TOKENS]", spec),
                  use_one_of_the_forms(spec));
  int64_t vocabulary = number(spec, parts[1]), count = parts.size() > 2 ? number(spec, parts[2]) : 1 << 18;
  int64_t context = o.context > 0 ? o.context : usual_context;
  count = std::max(count, 4 * context + 4);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  uint32_t at = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    uint32_t which = random_block(0, 0, choice_stream, i / 4)[i % 4] & 3;
    at = static_cast<uint32_t>(
        uint64_t{random_block(0, 0, successor_stream, at)[which]} * static_cast<uint64_t>(vocabulary) >> 32);
    tokens[i] = static_cast<int32_t>(at);
  }
  return cut("synthetic-text", tokens, o, vocabulary);
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name, const std::string& vocabulary) {
  if (name == "bytes") return std::make_unique<Bytes>();
  if (name.starts_with("bpe:")) return std::make_unique<Bpe>(name.substr(4));
  if (name.starts_with("gguf:")) return std::make_unique<GgufTokenizer>(Gguf(name.substr(5)));
  if (name.starts_with("hf:")) return std::make_unique<HfTokenizer>(name.substr(3));
  if (name == "chars") return std::make_unique<Characters>(vocabulary);
  throw invalid_option("tokenizer", name, "unknown", "use bytes, chars, hf:FOLDER, bpe:FOLDER or gguf:FILE");
}

extern const DataForm synthetic_text_form{.name = "synthetic-text",
                                          .form = "synthetic-text:VOCABULARY[:TOKENS]",
                                          .open = make_up,
                                          .takes_arguments = true,
                                          .takes = {"context"}};

extern const DataForm text_form{.name = "text",
                                .form = "text:FILE (UTF-8; see the options tokenizer and context)",
                                .open = open_text,
                                .takes_arguments = true,
                                .takes = {"context", "tokenizer"}};

}  // namespace tutti::data
