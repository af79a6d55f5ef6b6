#include "data/hf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "data/file.h"
#include "data/files/strict_json.h"
#include "data/tokenizers/models.h"
#include "data/tokenizers/stages.h"
#include "data/tokenizers/unicode.h"

namespace tutti::data {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

/// A token that is matched as a whole.
struct Added {
  int32_t number = 0;
  bool single_word = false, left = false, right = false;  ///< left, right: takes the white space there
};

/// Finds the added tokens of one kind, the leftmost and longest first.
class Matcher {
 public:
  void add(const std::string& text, const Added& token) {
    if (text.empty()) return;
    all_[text] = token;
    begins_[static_cast<unsigned char>(text[0])] = true;
    longest_ = std::max(longest_, text.size());
  }
  bool empty() const { return all_.empty(); }
  /// Calls piece(begin, end) for the text between tokens and token(number) for each.
  template <class F, class G>
  void cut(const std::string& text, F piece, G token) const {
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      auto [length, found] = match(text, at);
      if (!found) {
        ++at;
        continue;
      }
      size_t begin = at, end = at + length;
      while (found->left && begin > done && blank_before(text, begin)) begin -= blank_before(text, begin);
      while (found->right && blank_at(text, end)) end += blank_at(text, end);
      if (begin > done) piece(done, begin);
      token(found->number);
      at = done = end;
    }
    if (done < text.size()) piece(done, text.size());
  }

 private:
  std::pair<size_t, const Added*> match(const std::string& text, size_t at) const {
    if (!begins_[static_cast<unsigned char>(text[at])]) return {0, nullptr};
    for (size_t length = std::min(longest_, text.size() - at); length > 0; --length) {
      auto it = all_.find(text.substr(at, length));
      if (it == all_.end()) continue;
      const bool alone = !word_before(text, at) && !word_at(text, at + length);
      if (!it->second.single_word || alone) return {length, &it->second};
      return {0, nullptr};
    }
    return {0, nullptr};
  }
  /// Bytes of the character that ends at `end`, or begins at `begin`, if the pattern matches it; else 0.
  static size_t before(const std::string& text, size_t end, const Regex& pattern) {
    size_t begin = end;
    while (begin > 0 && (static_cast<unsigned char>(text[--begin]) & 0xc0) == 0x80) {
    }
    return begin < end && pattern.parts(text.substr(begin, end - begin))[0].match ? end - begin : 0;
  }
  static size_t after(const std::string& text, size_t begin, const Regex& pattern) {
    size_t end = begin;
    if (end < text.size()) ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    return begin < end && pattern.parts(text.substr(begin, end - begin))[0].match ? end - begin : 0;
  }
  static const Regex& blank() {
    static const Regex pattern("\\s", "");
    return pattern;
  }
  static const Regex& word() {
    static const Regex pattern("\\w", "");
    return pattern;
  }
  static size_t blank_before(const std::string& t, size_t at) { return before(t, at, blank()); }
  static size_t blank_at(const std::string& t, size_t at) { return after(t, at, blank()); }
  static bool word_before(const std::string& t, size_t at) { return before(t, at, word()) > 0; }
  static bool word_at(const std::string& t, size_t at) { return after(t, at, word()) > 0; }

  std::unordered_map<std::string, Added> all_;
  bool begins_[256] = {};
  size_t longest_ = 0;
};

/// The special tokens that the post-processor puts before and after a text.
struct Frame {
  std::vector<int32_t> before, after;
};

int32_t number_at(const json& j, const std::string& place) {
  if (!j.is_number_unsigned() || j.get<uint64_t>() >= std::numeric_limits<int32_t>::max())
    fail_at(place, "expected an integer from 0 to 2^31 - 2");
  return j.get<int32_t>();
}

void read_template(const json& j, const std::string& place, Frame& frame) {
  if (!j.contains("single") || !j["single"].is_array()) fail_at(place, "'single' is missing");
  bool seen = false;
  for (const json& item : j["single"]) {
    if (item.is_object() && item.contains("Sequence")) {
      if (seen) fail_at(place, "'single' has the text twice");
      seen = true;
      continue;
    }
    if (!item.is_object() || !item.contains("SpecialToken")) fail_at(place, "'single' has an unknown item");
    const std::string id = text_at(item["SpecialToken"], "id", place);
    const json tokens = j.value("special_tokens", json::object());
    if (!tokens.is_object() || !tokens.contains(id) || !tokens[id].is_object() || !tokens[id].contains("ids") ||
        !tokens[id]["ids"].is_array())
      fail_at(place, fmt::format("'special_tokens' lacks '{}'", printable(id, 40)));
    for (const json& number : tokens[id]["ids"])
      (seen ? frame.after : frame.before).push_back(number_at(number, place));
  }
}

void read_frame(const json& j, const std::string& place, Frame& frame) {
  if (j.is_null()) return;
  const std::string type = type_of(j, place), here = place + ": " + printable(type, 40);
  if (type == "ByteLevel") return;  // changes only offsets
  if (type == "Sequence") {
    if (!j.contains("processors") || !j["processors"].is_array()) fail_at(here, "'processors' is missing");
    for (const json& one : j["processors"]) read_frame(one, place, frame);
    return;
  }
  if (!frame.before.empty() || !frame.after.empty()) fail_at(here, "more than one post-processor adds tokens");
  if (type == "TemplateProcessing") return read_template(j, here, frame);
  if (type != "BertProcessing" && type != "RobertaProcessing")
    fail_at(here, "post-processors of this type are not supported");
  auto token = [&](const char* key) {
    if (!j.contains(key) || !j[key].is_array() || j[key].size() != 2)
      fail_at(here, fmt::format("'{}' is missing", key));
    return number_at(j[key][1], here);
  };
  frame.before.push_back(token("cls"));
  frame.after.push_back(token("sep"));
}

}  // namespace

struct HfTokenizer::Parts {
  Normalizer normalize;
  Splitter split;
  std::unique_ptr<PieceModel> model;
  TokenDecoder decode;
  Matcher raw, normalized;
  Frame frame;
};

namespace {

const char* const remedy = "use a folder with a tokenizer.json";

/// The tokens of eos_token_id, a number or a list; false if the file does not name any.
bool read_ends(const std::string& path, std::set<int32_t>& ends) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const char* const other = "download the file again";
  const json j = parse_strict(read_file(path, other), {.depth = 16}, [&](size_t byte, const std::string& what) {
    throw invalid(fmt::format("{}, byte {}: {}", path, byte, what), other);
  });
  if (!j.is_object() || !j.contains("eos_token_id") || j["eos_token_id"].is_null()) return false;
  const json& all = j["eos_token_id"];
  const std::string place = path + ": eos_token_id";
  if (!all.is_array()) ends.insert(number_at(all, place));
  if (all.is_array())
    for (const json& one : all) ends.insert(number_at(one, place));
  return true;
}

}  // namespace

HfTokenizer::HfTokenizer(const std::string& folder)
    : HfTokenizer(read_file((fs::path(folder) / "tokenizer.json").string(), remedy),
                  (fs::path(folder) / "tokenizer.json").string()) {
  if (!read_ends((fs::path(folder) / "generation_config.json").string(), ends_))
    read_ends((fs::path(folder) / "config.json").string(), ends_);
}

HfTokenizer::HfTokenizer(const std::string& text, const std::string& path) : parts_(std::make_unique<Parts>()) {
  json j = parse_strict(text, {.depth = 32}, [&](size_t byte, const std::string& what) {
    throw invalid(fmt::format("{}, byte {}: {}", path, byte, what), remedy);
  });
  if (!j.is_object() || !j.contains("model")) fail_at(path, "'model' is missing");
  auto at = [&](const char* key) { return j.value(key, json()); };
  parts_->normalize = read_normalizer(at("normalizer"), path + ": normalizer");
  parts_->split = read_splitter(at("pre_tokenizer"), path + ": pre_tokenizer");
  parts_->model = read_model(j["model"], path + ": model");
  parts_->decode = read_decoder(at("decoder"), path + ": decoder");
  read_frame(at("post_processor"), path + ": post_processor", parts_->frame);
  for (const auto& [token, number] : parts_->model->vocabulary()) texts_.emplace(number, token);
  const json added = at("added_tokens");
  if (!added.is_null() && !added.is_array()) fail_at(path, "'added_tokens' is not a list");
  for (const json& token : added) {
    const std::string place = path + ": added_tokens", content = text_at(token, "content", place);
    if (!token.contains("id")) fail_at(place, fmt::format("'{}' has no id", printable(content, 40)));
    Added a{number_at(token["id"], place), flag_at(token, "single_word", place, false),
            flag_at(token, "lstrip", place, false), flag_at(token, "rstrip", place, false)};
    texts_[a.number] = content;
    if (flag_at(token, "normalized", place, true))
      parts_->normalized.add(parts_->normalize(content), a);
    else
      parts_->raw.add(content, a);
  }
  for (const auto& [number, token] : texts_) size_ = std::max(size_, int64_t{number} + 1);
  if (static_cast<uint64_t>(size_) > 2 * texts_.size() + 1000)  // models allocate memory for every id
    fail_at(path, fmt::format("{} tokens have numbers up to {}", texts_.size(), size_ - 1));
  for (const auto* list : {&parts_->frame.before, &parts_->frame.after})
    for (int32_t token : *list)
      if (token >= size_) fail_at(path + ": post_processor", fmt::format("there is no token {}", token));
}

HfTokenizer::~HfTokenizer() = default;

std::vector<int32_t> HfTokenizer::encode(std::string_view given, const std::string& what) const {
  code_points(given, what);
  const Parts& p = *parts_;
  const std::string text(given);
  std::vector<int32_t> tokens = p.frame.before;
  std::unordered_map<std::string, std::vector<int32_t>> known;  // words repeat often
  constexpr size_t short_piece = 64;
  auto model = [&](const std::string& piece) {
    if (piece.size() > short_piece) return p.model->encode(piece, tokens);
    auto [it, fresh] = known.try_emplace(piece);
    if (fresh) p.model->encode(piece, it->second);
    tokens.insert(tokens.end(), it->second.begin(), it->second.end());
  };
  auto add = [&](int32_t token) { tokens.push_back(token); };
  p.raw.cut(
      text,
      [&](size_t begin, size_t end) {
        const std::string part = p.normalize(text.substr(begin, end - begin));
        p.normalized.cut(
            part,
            [&](size_t from, size_t to) {
              Pieces pieces = {{part.substr(from, to - from), begin == 0 && from == 0}};
              p.split(pieces);
              for (const Piece& piece : pieces) model(piece.text);
            },
            add);
      },
      add);
  tokens.insert(tokens.end(), p.frame.after.begin(), p.frame.after.end());
  return tokens;
}

std::string HfTokenizer::decode(std::span<const int32_t> tokens) const {
  std::vector<std::string> texts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    check_token(tokens, i);
    if (auto it = texts_.find(tokens[i]); it != texts_.end()) texts.push_back(it->second);
  }
  parts_->decode(texts);
  std::string all;
  for (const std::string& t : texts) all += t;
  return all;
}

}  // namespace tutti::data
