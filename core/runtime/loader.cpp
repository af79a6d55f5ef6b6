#include "core/runtime/loader.h"

#define BOOST_DLL_USE_STD_FS
#include <fmt/format.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/status.h"
#include "core/os/library.h"
#include "core/runtime/boundary.h"
#include "core/runtime/host.h"

namespace tutti {
namespace {

// Lives until the process ends, independent of the order of static destructors.
struct Started {
  TuttiPlugin table;    // with this header's size: functions that the plugin does not have are null
  std::string problem;  // "" or the message of a failed init
};
struct Loaded {
  std::mutex mutex;
  std::vector<std::unique_ptr<boost::dll::shared_library>> libraries;  // never destroyed: that would unload them
  std::map<const TuttiPlugin*, Started> started;                       // by the plugin's own table
  std::vector<const TuttiPlugin*> running;
};
Loaded& loaded() {
  static auto& all = *new Loaded;
  return all;
}

// Registered with atexit once per plugin, right after its init, so that it runs before the destructors of statics
// constructed while the library was loaded.
void shut_one_down() {
  auto& all = loaded();
  if (all.running.empty()) return;
  auto* table = all.running.back();
  all.running.pop_back();
  if (open_sessions() > 0) return;
  TuttiError error = empty_error();
  guarded(error, [&](TuttiError*) { return table->shutdown(), TUTTI_OK; });
}

TuttiNegotiate entry_of(const Manifest& m, boost::dll::shared_library& library) {
  namespace dll = boost::dll;
  if (std::string why = os::damage_of(m.library); !why.empty())
    throw invalid(fmt::format("library {} cannot be loaded: {}", m.library.string(), why), "install the plugin again");
  try {
    library.load(m.library, static_cast<dll::load_mode::type>(os::safe_search) | dll::load_mode::rtld_now |
                                dll::load_mode::rtld_local);
  } catch (const std::exception& e) {  // its text, unlike the error code, contains the loader's reason
    throw invalid(fmt::format("library {} cannot be loaded: {}", m.library.string(), e.what()));
  }
  if (!library.has("tutti_plugin"))
    throw invalid(fmt::format("library {} does not export the symbol tutti_plugin", m.library.string()));
  return &library.get<const TuttiPlugin*(uint32_t, uint32_t, uint32_t*)>("tutti_plugin");
}

const TuttiPlugin* negotiate(const Manifest& m, TuttiNegotiate entry) {
  uint32_t mine[2] = {0, 0};
  const TuttiPlugin* table = nullptr;
  TuttiError error = empty_error();
  if (int32_t rc = guarded(error, [&](TuttiError*) { return table = entry(abi_min, TUTTI_ABI, mine), TUTTI_OK; }))
    throw Error(code_of(rc), fmt::format("negotiate: {}", message_of(rc, error)));
  if (!table && mine[0] <= TUTTI_ABI && mine[1] >= abi_min)
    throw invalid(
        fmt::format("declines this engine, although both support ABI version {}: it may have been built with a "
                    "changed tutti_plugin.h",
                    std::min(mine[1], uint32_t{TUTTI_ABI})),
        "build the plugin with this engine's headers");
  if (!table)
    throw invalid(fmt::format("supports ABI versions {} to {}, but this engine supports {} to {}", mine[0], mine[1],
                              abi_min, TUTTI_ABI),
                  "install a plugin built for this engine");
  if (table->size < v1_size<TuttiPlugin>)
    throw invalid(
        fmt::format("its function table has {} bytes, but at least {} are needed", table->size, v1_size<TuttiPlugin>));
  if (table->abi < abi_min || table->abi > TUTTI_ABI)
    throw invalid(fmt::format("its function table has ABI version {}, but this engine supports {} to {}", table->abi,
                              abi_min, TUTTI_ABI));
  const std::pair<const char*, bool> required[] = {
      {"init", table->init},   {"shutdown", table->shutdown}, {"devices", table->devices}, {"open", table->open},
      {"close", table->close}, {"check", table->check},       {"compile", table->compile}, {"prepare", table->prepare},
      {"stage", table->stage}, {"run", table->run},           {"wait", table->wait},       {"usage", table->usage},
      {"read", table->read},   {"write", table->write},       {"release", table->release}};
  for (auto [name, there] : required)
    if (!there) throw invalid(fmt::format("its function table lacks the function {}", name));
  if (!table->name || m.name != table->name)
    throw invalid(
        fmt::format("has the name \"{}\", but its manifest has the name \"{}\"", clean_text(table->name), m.name));
  return table;
}

}  // namespace

std::atomic<int>& open_sessions() {
  static std::atomic<int> count{0};
  return count;
}

const TuttiPlugin* load_plugin(const Manifest& m) {
  auto& all = loaded();
  std::lock_guard lock(all.mutex);
  auto& library = *all.libraries.emplace_back(std::make_unique<boost::dll::shared_library>());
  const TuttiPlugin* own = negotiate(m, entry_of(m, library));
  auto [it, fresh] = all.started.try_emplace(own);
  auto& [table, problem] = it->second;
  TuttiPlugin& started = table;  // clang 14: lambdas cannot capture structured bindings
  if (fresh) {
    table = zero_extended<TuttiPlugin>(own, own->size);
    TuttiError error = empty_error();
    if (int32_t rc = guarded(error, [&](TuttiError* e) { return started.init(make_host(m.name), e); })) {
      problem = fmt::format("init: {}", message_of(rc, error));
    } else {
      all.running.push_back(&table);
      std::atexit(shut_one_down);
    }
  }
  if (!problem.empty()) throw Error(Code::internal, problem);
  return &table;
}

}  // namespace tutti
