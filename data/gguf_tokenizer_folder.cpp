#include "data/gguf_tokenizer_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "data/bpe.h"
#include "data/chat_template.h"
#include "data/file.h"
#include "data/gguf_tokenizer.h"
#include "data/hf_tokenizer.h"
#include "data/tokenizers/stages.h"

namespace tutti::data {
namespace {

using nlohmann::json;

// Types of tokens, by the format's numbers.
const std::string space = "\xe2\x96\x81";  // U+2581

[[noreturn]] void refuse(const std::string& place, const std::string& what) {
  throw invalid(fmt::format("{}: {}: GGUF files have no such tokenizer", place, what), "export the folder to ONNX");
}

/// The parts of a Sequence, or the one part; none for null.
json parts_of(const json& j, const char* key) {
  if (j.is_null()) return json::array();
  return j.value("type", "") == "Sequence" ? j.at(key) : json::array({j});
}

std::string short_text(const json& j) { return printable(j.dump(-1, ' ', false, json::error_handler_t::replace), 80); }

class Writer {
 public:
  Writer(const std::string& folder, int64_t vocabulary, std::vector<std::string>& notes)
      : path_((std::filesystem::path(folder) / "tokenizer.json").string()),
        own_(folder),  // checks the file
        all_(json::parse(read_file(path_, "use a folder with a tokenizer.json"))),
        model_(all_.at("model")),
        notes_(notes),
        tokens_(static_cast<size_t>(std::max(vocabulary, own_.size()))),
        types_(tokens_.size(), gguf_token::unused) {
    if (const std::string type = type_of(model_, path_); type != "BPE") refuse(path_ + ": model", "the type " + type);
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (std::string text = text_at(model_, key, path_, ""); !text.empty()) refuse(path_ + ": model", key);
    read_tokens();
  }

  GgufMetadata metadata() {
    const bool pieces = flag_at(model_, "byte_fallback", path_, false);
    put("tokenizer.ggml.model", gguf_value(std::string(pieces ? "llama" : "gpt2")));
    if (pieces)
      put_pieces();
    else
      put_byte_level();
    put("tokenizer.ggml.tokens", gguf_value(tokens_));
    put("tokenizer.ggml.token_type", gguf_value(types_));
    put_specials();
    return std::move(out_);
  }

 private:
  void put(const std::string& key, std::string value) { out_.emplace_back(key, std::move(value)); }

  void read_tokens() {
    for (const auto& [text, number] : model_.at("vocab").items()) {
      const auto n = number.get<size_t>();
      tokens_.at(n) = text;
      types_.at(n) = gguf_token::normal;
      numbers_.emplace(text, n);
    }
    for (const json& token : all_.value("added_tokens", json::array())) {
      const auto n = token.at("id").get<size_t>();
      tokens_.at(n) = token.at("content").get<std::string>();
      types_.at(n) = token.value("special", false) ? gguf_token::control : gguf_token::user_defined;
      for (const char* key : {"lstrip", "rstrip", "single_word"})
        if (token.value(key, false))
          notes_.push_back(fmt::format("the token '{}' has {} in {}, which GGUF files do not store",
                                       printable(tokens_[n], 40), key, path_));
    }
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (types_[i] == gguf_token::unused) tokens_[i] = fmt::format("[PAD{}]", i);
  }

  /// Both tokens of a merge.
  static std::pair<std::string, std::string> pair_of(const json& merge) {
    if (merge.is_array()) return {merge.at(0), merge.at(1)};
    std::vector<std::string> both = fields(merge.get<std::string>(), ' ');
    return {both.at(0), both.at(1)};
  }

  const BpeSplit& split() const {
    std::string regex;
    bool digits = false, gpt2 = false;
    for (const json& part : parts_of(all_.value("pre_tokenizer", json()), "pretokenizers")) {
      const std::string type = part.value("type", "");
      if (type == "Digits" && part.value("individual_digits", false)) {
        digits = true;
      } else if (type == "ByteLevel" && !part.value("add_prefix_space", true)) {
        gpt2 = part.value("use_regex", true);
      } else if (type == "Split" && part.value("behavior", "") == "Isolated" && !part.value("invert", false)) {
        regex = part.at("pattern").value("Regex", "");
      } else {
        refuse(path_ + ": pre_tokenizer", short_text(part));
      }
    }
    for (const BpeSplit& s : bpe_splits())
      if (s.digits_alone == digits && (s.source ? regex == s.source && !gpt2 : regex.empty() && gpt2)) return s;
    refuse(path_ + ": pre_tokenizer", short_text(all_.value("pre_tokenizer", json())));
  }

  void put_byte_level() {
    const BpeSplit& s = split();
    if (s.whole_pieces != flag_at(model_, "ignore_merges", path_, false))
      refuse(path_ + ": model",
             fmt::format("ignore_merges is {}, but {}'s is {}", !s.whole_pieces, s.name, s.whole_pieces));
    for (const json& part : parts_of(all_.value("normalizer", json()), "normalizers")) {
      if (part.value("type", "") != "NFC") refuse(path_ + ": normalizer", short_text(part));
      notes_.push_back(
          fmt::format("{}: GGUF files do not store the normalizer NFC: texts in another form of Unicode get "
                      "other tokens",
                      path_));
    }
    put("tokenizer.ggml.pre", gguf_value(std::string(s.name)));
    std::vector<std::string> merges;
    for (const json& merge : model_.at("merges")) {
      auto [left, right] = pair_of(merge);
      merges.push_back(left + " " + right);
    }
    put("tokenizer.ggml.merges", gguf_value(merges));
  }

  /// Whether a space is put before the text; refuses other ways to treat spaces than SentencePiece's.
  bool space_before() const {
    const json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}},
               prepend = {{"type", "Prepend"}, {"prepend", space}};
    const json normalizers = parts_of(all_.value("normalizer", json()), "normalizers");
    const json splitters = parts_of(all_.value("pre_tokenizer", json()), "pretokenizers");
    const json at_spaces = {{"type", "Split"},
                            {"pattern", {{"String", " "}}},
                            {"behavior", "MergedWithPrevious"},
                            {"invert", false}};  // has no effect after Replace
    const bool no_splitter = splitters.empty() || splitters == json::array({at_spaces});
    if (no_splitter && normalizers == json::array({prepend, replace})) return true;
    if (no_splitter && normalizers == json::array({replace})) return false;
    refuse(path_ + ": normalizer", short_text(all_.value("normalizer", json())) + " with the pre-tokenizer " +
                                       short_text(all_.value("pre_tokenizer", json())));
  }

  /// Scores that make SentencePiece merge in the order of the merges. Refuses merges that it would not make.
  void put_pieces() {
    put("tokenizer.ggml.pre", gguf_value(std::string("default")));
    put("tokenizer.ggml.add_space_prefix", gguf_value(space_before()));
    std::vector<float> scores(tokens_.size(), 0);
    std::unordered_map<std::string, size_t> ranks;  // by both tokens
    std::optional<size_t> last;
    for (const json& merge : model_.at("merges")) {
      auto [left, right] = pair_of(merge);
      const size_t token = numbers_.at(left + right);
      const std::string place = fmt::format("{}: merges[{}]", path_, ranks.size());
      if (last != token && scores[token] != 0) refuse(place, "merges of one token that do not follow each other");
      if (last != token) scores[token] = -static_cast<float>(ranks.size() + 1);
      last = token;
      ranks.emplace(left + " " + right, ranks.size());
    }
    const std::string unknown = text_at(model_, "unk_token", path_, "");
    for (const auto& [text, n] : numbers_) {
      if (byte_of_token(text) >= 0) types_[n] = gguf_token::byte;
      if (text == unknown) types_[n] = gguf_token::unknown;
      if (types_[n] != gguf_token::normal && types_[n] != gguf_token::user_defined) continue;
      for (size_t cut = 1; cut < text.size(); ++cut) {
        const std::string left = text.substr(0, cut), right = text.substr(cut);
        auto ordinary = [&](const std::string& part) {
          auto it = numbers_.find(part);
          return it != numbers_.end() && types_[it->second] == gguf_token::normal;
        };
        if (ordinary(left) && ordinary(right) && !ranks.contains(left + " " + right))
          refuse(path_ + ": model", fmt::format("there is no merge of '{}' and '{}'", left, right));
      }
    }
    put("tokenizer.ggml.scores", gguf_value(scores));
  }

  void put_specials() {
    const std::vector<int32_t> none = own_.encode("", ""), one = own_.encode("a", "");
    if (none.size() > 1 || (none.size() == 1 && one.front() != none.front()))
      refuse(path_ + ": post_processor", "more than one token, at the begin of the text");
    put("tokenizer.ggml.add_bos_token", gguf_value(!none.empty()));
    put("tokenizer.ggml.add_eos_token", gguf_value(false));
    std::vector<int32_t> ends(own_.ends().begin(), own_.ends().end());
    if (ends.empty() && none.empty()) {  // without ids, llama.cpp would end texts with token 11
      auto it =
          std::ranges::find_if(types_, [](int32_t t) { return t == gguf_token::control || t == gguf_token::unused; });
      if (it != types_.end()) ends.push_back(static_cast<int32_t>(it - types_.begin()));
    }
    if (!none.empty() || !ends.empty())
      put("tokenizer.ggml.bos_token_id", gguf_value(static_cast<uint32_t>(none.empty() ? ends[0] : none[0])));
    const char* const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                "tokenizer.ggml.eom_token_id"};
    for (size_t i = 0; i < ends.size(); ++i)
      if (i < std::size(keys))
        put(keys[i], gguf_value(static_cast<uint32_t>(ends[i])));
      else
        notes_.push_back(fmt::format("GGUF files have three tokens that end a text: {} is left out",
                                     tokens_.at(static_cast<size_t>(ends[i]))));
    for (size_t i = 0; i < tokens_.size(); ++i)
      if (types_[i] == gguf_token::unknown)
        put("tokenizer.ggml.unknown_token_id", gguf_value(static_cast<uint32_t>(i)));
    const std::string chat = chat_template_of_folder(std::filesystem::path(path_).parent_path().string());
    if (!chat.empty()) put("tokenizer.chat_template", gguf_value(chat));
  }

  std::string path_;
  HfTokenizer own_;
  json all_;
  const json& model_;
  std::vector<std::string>& notes_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> types_;
  std::unordered_map<std::string, size_t> numbers_;  // of the model's vocabulary
  GgufMetadata out_;
};

}  // namespace

GgufMetadata gguf_tokenizer_of_folder(const std::string& folder, int64_t vocabulary,
                                      std::vector<std::string>& notes) try {
  return Writer(folder, vocabulary, notes).metadata();
} catch (const json::exception& e) {
  throw invalid(fmt::format("{}/tokenizer.json: {}", folder, e.what()), "use another folder");
}

}  // namespace tutti::data
