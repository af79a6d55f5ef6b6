#include "sdk/rendered/shared.h"

#include <algorithm>

#include "sdk/cache_key.h"

namespace tutti::sdk {

std::vector<KernelId> RenderedShared::build(const std::vector<KernelSource>& sources) {
  std::vector<std::string> texts;  // unique keys of the kernels
  std::map<std::string, size_t> absent;
  for (size_t k = 0; k < sources.size(); ++k) {
    texts.push_back(kernel_text(driver->traits().identity, sources[k]));
    if (!kernels.contains(texts[k])) absent.try_emplace(texts[k], k);
  }
  std::vector<size_t> fresh;
  for (const auto& [text, k] : absent) fresh.push_back(k);
  std::sort(fresh.begin(), fresh.end());  // program order, for deterministic builds
  build_fresh(sources, texts, fresh);
  std::vector<KernelId> ids;
  for (const std::string& text : texts) {
    ids.push_back(kernels.at(text));
    ++users[ids.back()];
  }
  return ids;
}

void RenderedShared::leave(const std::vector<KernelId>& ids) {
  constexpr int64_t most_unused = 64;
  for (KernelId id : ids) --users.at(id);
  auto unused = [&](const auto& kernel) { return users.at(kernel.second) == 0; };
  if (std::ranges::count_if(kernels, unused) <= most_unused) return;
  std::erase_if(kernels, [&](const auto& kernel) {
    if (!unused(kernel)) return false;
    driver->forget_kernel(kernel.second);
    return true;
  });
  std::erase_if(users, [](const auto& user) { return user.second == 0; });
}

void RenderedShared::build_fresh(const std::vector<KernelSource>& sources, const std::vector<std::string>& texts,
                                 const std::vector<size_t>& fresh) {
  if (fresh.empty()) return;
  std::vector<KernelSource> chosen;
  std::vector<std::string> keys;
  std::vector<std::vector<std::byte>> cached;
  for (size_t k : fresh) {
    chosen.push_back(sources[k]);
    keys.push_back(cache_key("rendered", texts[k]));
    cached.push_back(host.cache_get(keys.back()));
  }
  std::vector<std::vector<std::byte>> entries = cached;
  std::vector<KernelId> ids;
  try {
    ids = driver->build_all(chosen, entries);
  } catch (const BuildError& e) {
    throw BuildError(fresh.at(e.source), e);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    kernels.emplace(texts[fresh[i]], ids[i]);
    if (!entries[i].empty() && entries[i] != cached[i]) host.cache_put(keys[i], entries[i]);
  }
}

}  // namespace tutti::sdk
