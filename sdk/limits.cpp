#include "sdk/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/status.h"

namespace tutti::sdk {
namespace {

using nlohmann::json;

constexpr const char* remedy = "docs/DEVICES.md describes these files; tests/limits has some";

/// The numbers or texts of an array; the other type's result is empty.
template <class T>
std::vector<T> elements(const json& list) {
  std::vector<T> out;
  for (const json& one : list)
    if (std::is_same_v<T, uint64_t> ? one.is_number_unsigned() : one.is_string()) out.push_back(one.get<T>());
  return out;
}

}  // namespace

Limits::Limits(const char* variable, const char* section) : variable_(variable), section_(section) {
  const char* file = std::getenv(variable);
  if (!file || !*file) return;
  file_ = file;
  auto fail = [&](const std::string& why) { throw invalid(fmt::format("{}={}: {}", variable_, file_, why), remedy); };
  std::ifstream in(file_);
  if (!in || std::filesystem::is_directory(file_)) fail("the file cannot be read");
  json all;
  try {
    all = json::parse(in);
  } catch (const json::exception& e) {
    fail(fmt::format("this is not JSON: {}", e.what()));
  }
  if (!all.is_object()) fail("a JSON object is needed");
  for (auto& [key, value] : all.items()) {
    bool text = key == "card" || key == "source" || key == "date", part = key == "vulkan" || key == "opencl";
    if (!text && !part) fail(fmt::format("unknown key '{}'; allowed are card, source, date, vulkan and opencl", key));
    if (text ? !value.is_string() : !value.is_object())
      fail(fmt::format("key '{}': {} is needed, not {}", key, text ? "a text" : "an object", value.dump()));
  }
  if (!all.contains("card")) fail("key 'card' is missing: the name of the card");
  if (!all.contains(section)) fail(fmt::format("it has no section '{}': this card has no such limits", section));
  card_ = all["card"];
  for (auto& [key, value] : all[section].items()) {
    texts_[key] = value.dump();
    if (value.is_boolean())
      values_[key] = value.get<bool>();
    else if (value.is_number_unsigned())
      values_[key] = value.get<uint64_t>();
    else if (value.is_string())
      values_[key] = value.get<std::string>();
    else if (value.is_array() && elements<uint64_t>(value).size() == value.size())
      values_[key] = elements<uint64_t>(value);
    else if (value.is_array() && elements<std::string>(value).size() == value.size())
      values_[key] = elements<std::string>(value);
    else
      refuse(key, "a whole number, true, false, a text or a list of them is needed");
  }
}

void Limits::refuse(const std::string& key, const std::string& why) const {
  auto text = texts_.find(key);
  throw invalid(fmt::format("{}={}: {}.{}{}: {}", variable_, file_, section_, key,
                            text == texts_.end() ? "" : " = " + text->second, why),
                remedy);
}

void Limits::note(const char* key, bool lower) { (lower ? lowered_ : idle_).insert(key); }

template <class T>
const T* Limits::get(const char* key, const char* wanted) {
  known_.insert(key);
  auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (!value) refuse(key, fmt::format("{} is needed", wanted));
  return value;
}

uint64_t Limits::number(const char* key, uint64_t least) {
  const auto* value = get<uint64_t>(key, "a whole number");
  if (value && *value < least) refuse(key, fmt::format("must be at least {}", least));
  return value ? *value : 0;
}

uint64_t Limits::alignment(const char* key) {
  uint64_t value = number(key, 1);
  if (value && (!std::has_single_bit(value) || value > 1 << 20)) refuse(key, "a power of two up to 1048576 is needed");
  return value;
}

const bool* Limits::flag(const char* key) { return get<bool>(key, "true or false"); }

std::vector<uint64_t> Limits::numbers(const char* key, size_t count) {
  const auto* list = get<std::vector<uint64_t>>(key, "a list of whole numbers");
  if (!list) return {};
  if (list->size() != count) refuse(key, fmt::format("{} numbers are needed", count));
  if (std::ranges::count(*list, 0)) refuse(key, "each number must be at least 1");
  return *list;
}

void Limits::only(const char* key, std::span<const std::pair<const char*, uint32_t>> names, uint32_t& bits) {
  const auto* list = get<std::vector<std::string>>(key, "a list of texts");
  if (!list) return;
  uint32_t kept = 0;
  for (const std::string& one : *list) {
    auto found = std::ranges::find_if(names, [&](const auto& n) { return one == n.first; });
    if (found == names.end()) {
      std::vector<std::string> all;
      for (const auto& [name, bit] : names) all.emplace_back(name);
      refuse(key, fmt::format("unknown name '{}'; allowed are {}", one, fmt::join(all, ", ")));
    }
    kept |= found->second;
  }
  note(key, (bits & kept) != bits);
  bits &= kept;
}

bool Limits::is_gpu(const char* key, std::span<const char* const> gpus, std::span<const char* const> others) {
  const auto* value = get<std::string>(key, "a text");
  if (!value) return false;
  bool gpu = std::ranges::count(gpus, *value) > 0;
  if (!gpu && !std::ranges::count(others, *value))
    refuse(key, fmt::format("allowed are {}, {}", fmt::join(gpus, ", "), fmt::join(others, ", ")));
  return gpu;
}

void Limits::unused(std::initializer_list<const char*> keys) {
  for (const char* key : keys) known_.insert(key);
}

void Limits::guaranteed(const char* key, size_t count, uint64_t needed) {
  for (uint64_t n : numbers(key, count))
    if (n < needed) refuse(key, fmt::format("every device offers at least {}, which kernels need", needed));
}

void Limits::check_keys() const {
  for (auto& [key, text] : texts_)
    if (!known_.contains(key)) refuse(key, fmt::format("unknown key; allowed are {}", fmt::join(known_, ", ")));
}

std::string Limits::name() const {
  return fmt::format("the limits of '{}' ({})", card_, std::filesystem::path(file_).filename().string());
}

std::string Limits::summary(const std::string& device) const {
  return fmt::format("{} has {}, by {}: lower than what it reports are {}{}", device, name(), variable_,
                     lowered_.empty() ? "none" : fmt::format("{}", fmt::join(lowered_, ", ")),
                     idle_.empty() ? "" : fmt::format("; without effect: {}", fmt::join(idle_, ", ")));
}

}  // namespace tutti::sdk
