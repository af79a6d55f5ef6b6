// Structs of a different size than the plugin was built with.
#include <fmt/format.h>

#include <cstring>

#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

/// Checks, compiles and runs a copy of the small program with host structs of other sizes.
void train(PluginUnderTest& plugin, Findings& f, const Growth& growth) {
  RawSession s(plugin, f);
  const TuttiPlugin& t = s.table();
  SmallProgram p;
  ProgramCopy copy(p.get(), growth);
  auto* verdicts = static_cast<uint8_t*>(copy.place(p.get().nodes.count));
  std::memset(verdicts, 9, p.get().nodes.count);
  TuttiSink silent = {nullptr, [](void*, uint32_t, const char*) {}};
  succeed(f, "check", [&](TuttiError* e) { return t.check(s.get(), &copy.get(), verdicts, silent, e); });
  for (uint32_t k = 0; k < p.get().nodes.count; ++k)
    if (verdicts[k] != 1) throw Unsupported("the device declines a small elementwise program");

  auto* options = static_cast<TuttiOptions*>(copy.place(growth.size<TuttiOptions>()));
  options->size = growth.size<TuttiOptions>();
  options->flags = 0;
  options->tuning_bytes = 0;
  auto* memory = static_cast<TuttiMemory*>(copy.place(growth.size<TuttiMemory>()));
  memory->size = growth.size<TuttiMemory>();
  TuttiExecutable* x = nullptr;
  succeed(f, "compile", [&](TuttiError* e) { return t.compile(s.get(), &copy.get(), options, &x, memory, e); });
  if (memory->size != growth.size<TuttiMemory>()) f.add("compile changed the size of the memory struct");
  SmallRun twin(s, p.get(), p.size());  // the same program with this ABI's structs
  TuttiMemory want = twin.memory();
  if (memory->arena != want.arena || memory->constants != want.constants || memory->workspace != want.workspace ||
      memory->staging != want.staging)
    f.add("compile reports different sizes than for the same program with structs of this ABI's size");
  s.prepare(x);
  std::vector<float> a = drawn(p.size(), 0), b = drawn(p.size(), 1);
  std::vector<void*> feeds = s.stage(x, 2);
  std::memcpy(feeds[0], a.data(), a.size() * sizeof(float));
  std::memcpy(feeds[1], b.data(), b.size() * sizeof(float));
  s.wait(s.run(x));
  std::vector<float> got = s.read("s", p.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != 0.5f * a[i] * b[i])
      return f.add(fmt::format("element {} of the state is {}, expected {}", i, got[i], 0.5f * a[i] * b[i]));
}

void larger(PluginUnderTest& plugin, Findings& f) {
  for (uint32_t extra : {8u, 64u, 1000u}) train(plugin, f, {.extra = extra});
}

void smaller(PluginUnderTest& plugin, Findings& f) { train(plugin, f, {.version1 = true, .guarded = true}); }

void exact(PluginUnderTest& plugin, Findings& f) { train(plugin, f, {.guarded = true}); }

void errors(PluginUnderTest& plugin, Findings& f) {
  RawSession s(plugin, f);
  struct Room {
    TuttiError error;
    char more[256];
    uint8_t behind[256];
  } room;
  std::memset(&room, 0xA5, sizeof room);
  room.error.size = offsetof(Room, behind);
  uint64_t now = 0;
  int32_t code = s.table().read(s.get(), "no.such.state", &now, sizeof now, &room.error);
  if (code != TUTTI_INVALID) f.add(fmt::format("read of an unknown state: {}", code_name(code)));
  if (!std::memchr(room.error.message, 0, sizeof room.error.message) || !room.error.message[0])
    f.add("an error struct that has grown gets no NUL-ended message");
  for (uint8_t b : room.behind)
    if (b != 0xA5) return f.add("wrote past the end of an error struct that has grown");
}

}  // namespace

Checks growth_checks() {
  return {
      {"growth.larger", "structs and array elements that have grown are read by their sizes and strides", larger},
      {"growth.smaller", "structs and array elements as version 1 began are enough", smaller},
      {"growth.exact", "nothing past a struct's size or an array's end is accessed", exact},
      {"growth.errors", "an error struct that has grown is filled like any other", errors},
  };
}

}  // namespace tutti::conformance
