#include "core/world/agree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/cpus.h"
#include "core/base/text.h"
#include "core/os/threads.h"

namespace tutti {
namespace {

constexpr char between = '\0';
constexpr size_t shown = 60;  // characters of a value

std::string packed(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings)
    for (const std::string* part : {&key, &value}) (text += *part) += between;
  return text;
}

Settings unpacked(const std::string& text) {
  Settings all;
  std::vector<std::string> words = fields(text, between);
  for (size_t i = 0; i + 1 < words.size(); i += 2) all.emplace_back(words[i], words[i + 1]);
  return all;
}

std::string value_of(const Settings& settings, const std::string& key) {
  auto it = std::ranges::find(settings, key, &Settings::value_type::first);
  if (it == settings.end()) return "not given";
  return it->second.empty() ? "\"\"" : it->second;
}

std::string cut(const std::string& value) { return value.size() > shown ? value.substr(0, shown) + "…" : value; }

/// The CPUs of the affinity mask.
std::vector<int> allowed_cpus() {
  std::vector<int> all;
  os::CpuMask mask;
  if (os::allowed_cpus(mask))
    for (int cpu = 0; cpu < os::CpuMask::most; ++cpu)
      if (mask.has(cpu)) all.push_back(cpu);
  return all;
}

}  // namespace

std::string differences(const std::vector<Settings>& by_rank) {
  std::vector<std::string> keys;
  for (const Settings& settings : by_rank)
    for (const auto& [key, value] : settings)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::string text;
  for (const std::string& key : keys) {
    std::vector<std::pair<std::string, std::vector<size_t>>> values;  // each with its ranks
    for (size_t r = 0; r < by_rank.size(); ++r) {
      std::string value = value_of(by_rank[r], key);
      auto it = std::ranges::find(values, value, [](const auto& v) { return v.first; });
      if (it == values.end()) it = values.insert(values.end(), {value, {}});
      it->second.push_back(r);
    }
    if (values.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [value, ranks] : values)
      parts.push_back(fmt::format("{} (rank {})", cut(value), fmt::join(ranks, ", ")));
    text += fmt::format("\n  {}: {}", key, fmt::join(parts, ", "));
  }
  return text;
}

void agree(World& world, const Settings& mine) {
  std::vector<Settings> all;
  for (const std::string& text : world.gather(packed(mine))) all.push_back(unpacked(text));
  if (std::string text = differences(all); !text.empty())
    throw invalid("the ranks do not run the same training:" + text,
                  "start every rank with the same program and options");
}

int share_cpus(World& world) {
  std::vector<int> mine = allowed_cpus();
  auto me = static_cast<size_t>(world.rank()), sharing = size_t{0}, before = size_t{0};
  std::vector<std::string> masks = world.gather(fmt::format("{}", fmt::join(mine, ",")));
  for (size_t r = 0; r < masks.size(); ++r) {
    if (world.hosts()[r] != world.hosts()[me] || masks[r] != masks[me]) continue;
    ++sharing;
    before += r < me;
  }
  auto each = std::max<size_t>(static_cast<size_t>(usable_cpus()) / sharing, 1);
  if (sharing < 2 || mine.empty()) return usable_cpus();
  os::CpuMask own;
  for (size_t i = 0; i < each; ++i) own.add(mine[(before * each + i) % mine.size()]);
  os::bind_thread(own);
  return static_cast<int>(each);
}

}  // namespace tutti
