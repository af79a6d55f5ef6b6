// Texts: a file, by bytes or characters, or made-up tokens that a model can learn.
#include "data/text.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/form.h"

namespace tutti::data {
namespace {

constexpr uint32_t successor_stream = 0x64617405, choice_stream = 0x64617406;
constexpr int64_t usual_context = 256;

std::string read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw invalid(fmt::format("{}: there is no such file", path), "name a text file: text:FILE");
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) throw invalid(fmt::format("{}: cannot be read", path), "check its permissions");
  return text.str();
}

/// The last tenth is the test text.
Sources cut(const std::string& name, const std::vector<int32_t>& tokens, const OpenOptions& o, int64_t vocabulary) {
  int64_t context = o.context > 0 ? o.context : usual_context;
  auto middle = tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() - tokens.size() / 10);
  if (static_cast<int64_t>(tokens.end() - middle) <= context) {
    if (static_cast<int64_t>(tokens.size()) <= 2 * context + 2)
      throw invalid(fmt::format("text {}: {} tokens, training and test samples take {} and one more each", name,
                                tokens.size(), context),
                    "use a smaller --context, or a longer text");
    middle = tokens.end() - (context + 1);
  }
  return {
      std::make_shared<TokenStream>(name + "/train", std::vector<int32_t>(tokens.begin(), middle), context, vocabulary),
      std::make_shared<TokenStream>(name + "/test", std::vector<int32_t>(middle, tokens.end()), context, vocabulary)};
}

Sources open_text(const std::string& spec, const OpenOptions& o) {
  std::string path = spec.substr(spec.find(':') + 1), text = read_file(path);
  if (text.empty()) throw invalid(fmt::format("{}: the text is empty", path), "name a file that holds text");
  std::string name = std::filesystem::path(path).filename().string();
  if (o.tokenizer == "bytes") {
    std::vector<int32_t> tokens;
    tokens.reserve(text.size());
    for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return cut(name, tokens, o, 256);
  }
  if (o.tokenizer != "chars") throw invalid(fmt::format("--tokenizer {}: unknown", o.tokenizer), "use bytes or chars");
  code_points(text, path);
  Characters characters(text);
  return cut(name, characters.encode(text), o, characters.size());
}

int64_t number(const std::string& spec, const std::string& text) {
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 2 || n > int64_t{1} << 31)
    throw invalid(fmt::format("data '{}': '{}' is no whole number from 2 to 2^31", spec, text), use_one_of_the_forms());
  return n;
}

/// Every token has four successors, drawn once; which of them follows is drawn each time.
Sources make_up(const std::string& spec, const OpenOptions& o) {
  std::vector<std::string> parts = split(spec, ':');
  if (parts.size() < 2 || parts.size() > 3)
    throw invalid(fmt::format("data '{}': expected made-up-text:VOCABULARY[:TOKENS]", spec), use_one_of_the_forms());
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
  return cut("made-up-text", tokens, o, vocabulary);
}

}  // namespace

extern const DataForm made_up_text_form, text_form;
const DataForm made_up_text_form{
    .name = "made-up-text", .form = "made-up-text:VOCABULARY[:TOKENS]", .open = make_up, .takes_arguments = true};

const DataForm text_form{.name = "text",
                         .form = "text:FILE (UTF-8; see --tokenizer and --context)",
                         .open = open_text,
                         .takes_arguments = true};

}  // namespace tutti::data
