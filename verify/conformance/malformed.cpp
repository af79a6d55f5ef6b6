// Programs with unknown features and programs that violate the contract.
#include <fmt/format.h>

#include "verify/conformance/programs.h"

namespace tutti::conformance {
namespace {

using Change = std::function<void(ProgramCopy&)>;

struct Verdicts {
  std::vector<uint8_t> accepted;
  std::vector<std::string> why;
};

/// Calls check on a program; the plugin may also refuse the program as a whole.
Answer checked(RawSession& s, Findings& f, const TuttiProgram& p, Verdicts& v) {
  v.accepted.assign(p.nodes.count, 0);
  v.why.assign(p.nodes.count, "");
  TuttiSink sink = {&v.why, [](void* to, uint32_t node, const char* text) {
                      auto& why = *static_cast<std::vector<std::string>*>(to);
                      if (node < why.size() && text) why[node] += text;
                    }};
  return ask(f, "check", [&](TuttiError* e) { return s.table().check(s.get(), &p, v.accepted.data(), sink, e); });
}

int32_t compiled(RawSession& s, Findings& f, const TuttiProgram& p, const std::string& what) {
  TuttiMemory m = {sizeof m};
  TuttiOptions o = {sizeof o, 0, 0};
  TuttiExecutable* x = nullptr;
  Answer a = ask(f, "compile of " + what, [&](TuttiError* e) { return s.table().compile(s.get(), &p, &o, &x, &m, e); });
  if (a.code != TUTTI_OK && a.node != TUTTI_NONE && a.node >= p.nodes.count)
    f.add(fmt::format("compile of {}: the error is about node {} of {}", what, a.node, p.nodes.count));
  return a.code;
}

/// A program with an unknown feature must be declined: as a whole or, with `node`, only that node.
void declined(PluginUnderTest& plugin, Findings& f, const std::string& what, const Change& change, bool node = true) {
  RawSession s(plugin, f);
  SmallProgram p;
  ProgramCopy copy(p.get());
  change(copy);
  Verdicts v;
  Answer a = checked(s, f, copy.get(), v);
  if (a.code == TUTTI_OK) {
    bool all = true;
    for (uint8_t one : v.accepted) all = all && one == 1;
    if (node ? v.accepted[0] == 1 : all) f.add(fmt::format("check accepts {}", what));
    if (node && v.accepted[0] == 0 && v.why[0].empty()) f.add(fmt::format("check declines {} without a reason", what));
    for (size_t k = 1; node && k < v.accepted.size(); ++k)
      if (!v.accepted[k]) f.add(fmt::format("check of {} declines node {} too: {}", what, k, v.why[k]));
  } else if (a.code != TUTTI_DECLINED || node) {
    f.add(fmt::format("check of {}: {} ({}), expected a verdict per node", what, code_name(a.code), a.message));
  }
  int32_t code = compiled(s, f, copy.get(), what);
  if (code != TUTTI_DECLINED) f.add(fmt::format("compile of {}: {}, expected TUTTI_DECLINED", what, code_name(code)));
}

void unknown_op(PluginUnderTest& b, Findings& f) {
  declined(b, f, "an unknown op", [](ProgramCopy& c) {
    c.node(0).op = "no_such_op_of_1999";
    c.node(0).expr = {};
  });
}
void unknown_version(PluginUnderTest& b, Findings& f) {
  declined(b, f, "an op version of tomorrow", [](ProgramCopy& c) { c.node(0).version = 1000000; });
}
void unknown_flag(PluginUnderTest& b, Findings& f) {
  declined(b, f, "an unknown node flag", [](ProgramCopy& c) { c.node(0).flags |= 1u << 30; });
}
void unknown_instruction(PluginUnderTest& b, Findings& f) {
  declined(b, f, "an unknown instruction", [](ProgramCopy& c) { c.instr(0, 2).code = 60000; });
}
void unknown_dtype(PluginUnderTest& b, Findings& f) {
  declined(b, f, "a value of an unknown dtype", [](ProgramCopy& c) { c.value(0).dtype = 99; });
}
void unknown_numerics(PluginUnderTest& b, Findings& f) {
  declined(
      b, f, "unknown numerics", [](ProgramCopy& c) { c.get().numerics = 77; }, false);
}
void required(PluginUnderTest& b, Findings& f) {
  for (uint64_t bits : {uint64_t{1}, uint64_t{1} << 31, uint64_t{1} << 63, ~uint64_t{0}})
    declined(
        b, f, fmt::format("required bits {:#x}", bits), [&](ProgramCopy& c) { c.get().required = bits; }, false);
}

void malformed(PluginUnderTest& plugin, Findings& f) {
  static const int64_t negative[] = {-3}, vast[] = {int64_t{1} << 62, int64_t{1} << 62};
  const std::pair<const char*, Change> all[] = {
      {"a program of 8 bytes", [](ProgramCopy& c) { c.get().size = 8; }},
      {"values at NULL", [](ProgramCopy& c) { c.get().values.at = nullptr; }},
      {"values of 8 bytes", [](ProgramCopy& c) { c.get().values.stride = 8; }},
      {"nodes at NULL", [](ProgramCopy& c) { c.get().nodes.at = nullptr; }},
      {"nodes of 8 bytes", [](ProgramCopy& c) { c.get().nodes.stride = 8; }},
      {"states of 4 bytes", [](ProgramCopy& c) { c.get().states.stride = 4; }},
      {"a value of an unknown role", [](ProgramCopy& c) { c.value(0).role = 99; }},
      {"a value without dims", [](ProgramCopy& c) { c.value(0).dims = nullptr; }},
      {"a negative dimension", [](ProgramCopy& c) { c.value(0).dims = negative; }},
      {"more elements than 64 bits count",
       [](ProgramCopy& c) {
         c.value(0).dims = vast;
         c.value(0).rank = 2;
       }},
      {"a feed without a name", [](ProgramCopy& c) { c.value(0).name = nullptr; }},
      {"a node without an op", [](ProgramCopy& c) { c.node(0).op = nullptr; }},
      {"an input that does not exist", [](ProgramCopy& c) { c.inputs(0)[0] = 1000; }},
      {"an input that a later node produces", [](ProgramCopy& c) { c.inputs(0)[0] = c.results(2)[0]; }},
      {"a result that does not exist", [](ProgramCopy& c) { c.results(0)[0] = 1000; }},
      {"a result that is a feed", [](ProgramCopy& c) { c.results(0)[0] = 0; }},
      {"one result of two nodes", [](ProgramCopy& c) { c.results(1)[0] = c.results(0)[0]; }},
      {"inputs at NULL", [](ProgramCopy& c) { c.node(0).inputs = nullptr; }},
      {"an instruction that reads a later one", [](ProgramCopy& c) { c.instr(0, 2).a = 1000; }},
      {"an instruction that reads an input that does not exist", [](ProgramCopy& c) { c.instr(0, 0).a = 1000; }},
      {"a state that ends as a value that does not exist", [](ProgramCopy& c) { c.state(0).after = 1000; }},
      {"a state that begins as a feed", [](ProgramCopy& c) { c.state(0).before = 0; }},
      {"a state without a name", [](ProgramCopy& c) { c.state(0).name = nullptr; }},
      {"a group after the last node", [](ProgramCopy& c) { c.group(0).first = 1000; }},
  };
  SmallProgram p;
  RawSession s(plugin, f);
  for (const auto& [what, change] : all) {
    ProgramCopy copy(p.get());
    change(copy);
    int32_t code = compiled(s, f, copy.get(), what);
    if (code != TUTTI_INVALID && code != TUTTI_DECLINED)
      f.add(fmt::format("compile of a program with {}: {}, expected TUTTI_INVALID", what, code_name(code)));
  }
  SmallRun after(s, p.get(), p.size());
  s.wait(after.enqueue(1));
  after.verify(f, "after malformed programs");
}

}  // namespace

Checks program_checks() {
  return {
      {"programs.unknown_op", "an op that nobody knows is declined with a reason, and it alone", unknown_op},
      {"programs.unknown_version", "a newer version of an op is declined", unknown_version},
      {"programs.unknown_flag", "a node with an unknown flag is declined", unknown_flag},
      {"programs.unknown_instruction", "an expression with an unknown instruction is declined", unknown_instruction},
      {"programs.unknown_dtype", "a node with a value of an unknown dtype is declined, and it alone", unknown_dtype},
      {"programs.unknown_numerics", "unknown numerics are declined", unknown_numerics},
      {"programs.required", "a program that requires unknown bits is declined", required},
      {"programs.malformed", "malformed programs are refused and leave the session as it was", malformed},
  };
}

}  // namespace tutti::conformance
