#include "train/run/saved_states.h"

#include <fmt/format.h>

#include <sstream>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {
namespace {

constexpr const char* key = "saved_states";

}  // namespace

std::string StateHash::text() const { return fmt::format("{:016x}", hash_); }

void add_saved_state(SavedStates& states, int64_t step, const std::string& hash) {
  constexpr size_t most = 256;
  states[step] = hash;
  if (states.size() <= most) return;
  size_t index = 0;
  std::erase_if(states, [&](const auto&) { return index++ % 2 == 0 && index < most; });
}

void write_saved_states(const SavedStates& states, std::map<std::string, std::string>& metadata) {
  std::string& text = metadata[key];
  text.clear();
  for (const auto& [step, hash] : states) text += fmt::format("{}{}:{}", text.empty() ? "" : " ", step, hash);
}

SavedStates read_saved_states(const std::map<std::string, std::string>& metadata, const std::string& path) {
  SavedStates states;
  auto it = metadata.find(key);
  if (it == metadata.end()) return states;
  std::istringstream words(it->second);
  for (std::string word; words >> word;) {
    const size_t colon = std::min(word.find(':'), word.size());
    auto step = parse_number<int64_t>(std::string_view(word).substr(0, colon));
    if (!step || *step < 0 || word.size() != colon + 17)
      throw invalid(fmt::format("{}: its metadata '{}' is damaged at '{}'", path, key, word),
                    "use another checkpoint of the run");
    states[*step] = word.substr(colon + 1);
  }
  return states;
}

}  // namespace tutti
