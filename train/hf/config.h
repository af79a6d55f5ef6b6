// config.json of a Hugging Face folder: every key is honoured or refused.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tutti::hf {

/// Reads the keys of a config. Each getter marks its key as read, and finish() refuses the others, so that no key that
/// changes the model is ignored. A null is treated as a missing key, as transformers does. All throw Error(invalid)
/// naming file, key, value and expectation.
class Config {
 public:
  /// `file` names it in messages.
  Config(const std::string& text, std::string file);
  const std::string& file() const { return file_; }
  /// Whether the head gets the classes of the data instead of its own.
  bool new_head = false;
  /// The text, for checkpoints.
  const std::string& text() const { return text_; }

  /// Whether the key is there, also with the value null.
  bool present(const std::string& key) const { return all_.contains(key); }
  /// Whether it has a value other than null.
  bool has(const std::string& key) const;
  std::string text(const std::string& key, const std::string& otherwise);
  /// The value, one of `choices`.
  std::string choice(const std::string& key, const std::string& otherwise, const std::vector<std::string>& choices);
  bool flag(const std::string& key, bool otherwise);
  /// A size or count from `least` to 2^31 - 1.
  int64_t integer(const std::string& key, int64_t otherwise, int64_t least = 1);
  /// A number of layers: at most 10000, because a few bytes must not cause hours of work.
  int64_t layers(const std::string& key, int64_t otherwise);
  /// Null if missing.
  std::optional<int64_t> optional_integer(const std::string& key, int64_t least = 1);
  /// A finite number above 0, or from 0 with `or_zero`.
  double real(const std::string& key, double otherwise, bool or_zero = false);
  std::optional<double> optional_real(const std::string& key);
  /// A probability in [0, 1).
  double probability(const std::string& key, double otherwise);
  /// A list of numbers above 0; empty if missing.
  std::vector<double> reals(const std::string& key);
  std::vector<int64_t> integers(const std::string& key, const std::vector<int64_t>& otherwise);
  std::vector<std::string> texts(const std::string& key);
  /// The object under a key as a config of its own, for finish() of its own; null if missing.
  std::optional<Config> object(const std::string& key);

  /// Number of entries of an object such as id2label; 0 if missing.
  int64_t entries(const std::string& key);
  /// Marks a key as read although it does not change the computation.
  void ignore(const std::string& key) { read_.insert(key); }
  /// Refuses the key unless it has that value or is missing.
  void expect(const std::string& key, const nlohmann::json& value, const std::string& why);
  /// Refuses every key that was not read, unless its value is null or empty, or it is known to have no effect.
  void finish() const;
  /// Throws Error(invalid): "FILE: KEY is VALUE, WHAT".
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Config() = default;
  const nlohmann::json* find(const std::string& key);
  std::string text_, file_;
  nlohmann::json all_;
  std::set<std::string> read_;
};

/// nn::activation()'s name for a value of hidden_act. Throws Error(invalid) for others.
std::string activation_of(Config& c, const std::string& key, const std::string& otherwise);

}  // namespace tutti::hf
