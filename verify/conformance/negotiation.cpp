// Checks of the exported function before init.
#include <fmt/format.h>

#include <set>

#include "core/runtime/boundary.h"
#include "verify/conformance/plugin_under_test.h"

namespace tutti::conformance {
namespace {

/// Requests versions [low, high]; the plugin must return a valid range.
const TuttiPlugin* negotiate(PluginUnderTest& plugin, Findings& f, uint32_t low, uint32_t high, uint32_t mine[2]) {
  mine[0] = mine[1] = TUTTI_NONE;
  const TuttiPlugin* t = nullptr;
  try {
    t = plugin.entry()(low, high, mine);
  } catch (const Failure&) {
    throw;
  } catch (...) {
    throw Failure("tutti_plugin threw an exception");
  }
  if (mine[0] == TUTTI_NONE || mine[1] == TUTTI_NONE)
    f.add(fmt::format("when asked for versions {} to {}, the plugin did not report its own range", low, high));
  else if (mine[0] < 1 || mine[0] > mine[1])
    f.add(fmt::format("its own range is {} to {}", mine[0], mine[1]));
  return t;
}

void load(PluginUnderTest& plugin, Findings&) { plugin.entry(); }

void below(PluginUnderTest& plugin, Findings& f) {
  uint32_t mine[2];
  if (negotiate(plugin, f, 0, 0, mine)) f.add("returned a table to a host that supports only version 0");
}

void above(PluginUnderTest& plugin, Findings& f) {
  uint32_t mine[2], again[2];
  negotiate(plugin, f, 1, TUTTI_ABI, mine);
  if (mine[1] < TUTTI_NONE - 100 && negotiate(plugin, f, mine[1] + 1, mine[1] + 9, again))
    f.add(fmt::format("returned a table to a host that supports versions {} to {}", mine[1] + 1, mine[1] + 9));
}

void overlap(PluginUnderTest& plugin, Findings& f) {
  uint32_t mine[2];
  const std::pair<uint32_t, uint32_t> ranges[] = {{TUTTI_ABI, TUTTI_ABI}, {0, TUTTI_ABI}, {1, 1000}};
  for (auto [low, high] : ranges) {
    const TuttiPlugin* t = negotiate(plugin, f, low, high, mine);
    uint32_t highest = std::min(high, mine[1]);
    if (!t)
      f.add(fmt::format("returned no table to a host that supports versions {} to {}", low, high));
    else if (t->abi != highest)
      f.add(fmt::format("the table for versions {} to {} has version {}, but {} is the highest that both support", low,
                        high, t->abi, highest));
  }
}

void pure(PluginUnderTest& plugin, Findings& f) {
  uint32_t mine[2];
  const TuttiPlugin *a = negotiate(plugin, f, 1, TUTTI_ABI, mine), *b = negotiate(plugin, f, 1, TUTTI_ABI, mine);
  if (a != b) f.add("two negotiations returned different tables");
}

void manifest(PluginUnderTest& plugin, Findings& f) {
  const Manifest& m = plugin.setup().manifest;
  uint32_t mine[2];
  const TuttiPlugin* t = negotiate(plugin, f, 1, TUTTI_ABI, mine);
  if (mine[0] != m.abi_min || mine[1] != m.abi_max)
    f.add(fmt::format("the library supports versions {} to {}, but its manifest says {} to {}", mine[0], mine[1],
                      m.abi_min, m.abi_max));
  if (!t) return;
  if (clean_text(t->name) != m.name)
    f.add(fmt::format("the library has the name \"{}\", but its manifest has the name \"{}\"", clean_text(t->name),
                      m.name));
  if (clean_text(t->version) != m.version)
    f.add(fmt::format("the version of the library is \"{}\", but that of its manifest is \"{}\"",
                      clean_text(t->version), m.version));
}

void table(PluginUnderTest& plugin, Findings& f) {
  const TuttiPlugin& t = plugin.table();
  const std::pair<const char*, bool> functions[] = {
      {"init", t.init},   {"shutdown", t.shutdown}, {"devices", t.devices}, {"open", t.open},   {"close", t.close},
      {"check", t.check}, {"compile", t.compile},   {"prepare", t.prepare}, {"stage", t.stage}, {"run", t.run},
      {"wait", t.wait},   {"usage", t.usage},       {"read", t.read},       {"write", t.write}, {"release", t.release}};
  for (auto [name, there] : functions)
    if (!there) f.add(fmt::format("the table lacks the function {}", name));
  std::set<const TuttiExt*> seen;
  for (const TuttiExt* x = t.extensions; x; x = x->next) {
    if (!seen.insert(x).second) throw Failure("the list of extensions is circular");
    if (!x->id || !*x->id) f.add("an extension has no id");
    if (x->size < v1_size<TuttiExt>) f.add(fmt::format("extension {} has {} bytes", clean_text(x->id), x->size));
  }
}

}  // namespace

Checks negotiation_checks() {
  return {
      {"negotiation.load", "the library loads and exports tutti_plugin", load},
      {"negotiation.below", "a host of older versions gets no table, but the plugin's own range", below},
      {"negotiation.above", "a host of newer versions alone gets no table", above},
      {"negotiation.overlap", "the table is of the highest version that both know", overlap},
      {"negotiation.pure", "asking twice gives the same table", pure},
      {"negotiation.manifest", "library and manifest agree on name, version and ABI", manifest},
      {"negotiation.table", "every function is there, extensions form a chain", table},
  };
}

}  // namespace tutti::conformance
