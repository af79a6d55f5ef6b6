// The C calls of groups of ranks: the extensions tutti.collective and tutti.sums.
#include "sdk/calls.h"

namespace tutti::sdk {
namespace {

std::vector<std::string> names_of(const char* const* states, size_t count, const char* call) {
  if (count) need(states, call, "the array of states");
  std::vector<std::string> names;
  for (size_t k = 0; k < count; ++k) {
    need(states[k], call, "a state's name");
    names.emplace_back(states[k]);
    if (std::find(names.begin(), names.end() - 1, names[k]) != names.end() - 1)
      throw invalid(fmt::format("{}: the state '{}' is given twice", call, names[k]));
  }
  return names;
}

int32_t call_unique_id(uint8_t* id, TuttiError* error) {
  return fence(error, [&] {
    need(id, "unique_id", "the id");
    GroupId made = this_plugin().unique_id();
    std::copy(made.begin(), made.end(), id);
  });
}

int32_t call_join(TuttiSession* session, const uint8_t* id, uint32_t rank, uint32_t ranks, TuttiError* error) {
  return fence(error, [&] {
    need(session, "join", "the session");
    need(id, "join", "the id");
    if (rank >= ranks) throw invalid(fmt::format("join: rank {} of {} ranks", rank, ranks));
    GroupId name;
    std::copy_n(id, name.size(), name.begin());
    session->impl->join(name, rank, ranks);
  });
}

int32_t call_leave(TuttiSession* session, TuttiError* error) {
  return fence(error, [&] {
    need(session, "leave", "the session");
    session->impl->leave();
  });
}

int32_t call_all_reduce(TuttiSession* session, const char* const* states, uint32_t count, TuttiError* error) {
  return fence(error, [&] {
    need(session, "all_reduce", "the session");
    session->impl->all_reduce(names_of(states, count, "all_reduce"));
  });
}

int32_t call_broadcast(TuttiSession* session, const char* const* states, uint32_t count, uint32_t root,
                       TuttiError* error) {
  return fence(error, [&] {
    need(session, "broadcast", "the session");
    session->impl->broadcast(names_of(states, count, "broadcast"), root);
  });
}

int32_t call_library(TuttiSession* session, const char** text, TuttiError* error) {
  return fence(error, [&] {
    need(session, "library", "the session");
    need(text, "library", "the text");
    *text = nullptr;
    session->group_library = session->impl->group_library();
    *text = session->group_library.c_str();
  });
}

int32_t call_prepare_sums(TuttiExecutable* executable, const char* const* states, const uint32_t* counts,
                          uint32_t groups, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "prepare_sums");
    if (groups) need(counts, "prepare_sums", "the array of counts");
    size_t all = 0;
    for (uint32_t g = 0; g < groups; ++g) all += counts[g];
    std::vector<std::string> names = names_of(states, all, "prepare_sums");
    for (const std::string& name : names)
      if (!executable->states.contains(name))
        throw invalid(fmt::format("prepare_sums: the program has no state '{}'", name));
    std::vector<std::vector<std::string>> parts;
    for (uint32_t g = 0, first = 0; g < groups; first += counts[g++])
      parts.emplace_back(names.begin() + first, names.begin() + first + counts[g]);
    executable->summed = false;
    executable->impl->prepare_sums(parts);
    executable->summed = true;
  });
}

int32_t call_run_and_sum(TuttiExecutable* executable, uint64_t* ticket, TuttiError* error) {
  return fence(error, [&] {
    need_prepared(executable, "run_and_sum");
    need(ticket, "run_and_sum", "the ticket");
    if (!executable->summed) throw invalid("run_and_sum: the executable sums no states", "call prepare_sums first");
    if (executable->feeds && !executable->staged)
      throw invalid(
          fmt::format("run_and_sum: the program's {} feeds were not staged since the last run", executable->feeds),
          "call stage before each run");
    executable->staged = false;
    *ticket = executable->impl->run_and_sum();
  });
}

int32_t call_abandon(TuttiSession* session, TuttiError* error) {
  return fence(error, [&] {
    need(session, "abandon", "the session");
    session->impl->abandon();
  });
}

int32_t call_mark(TuttiSession* session, uint64_t* ticket, TuttiError* error) {
  return fence(error, [&] {
    need(session, "mark", "the session");
    need(ticket, "mark", "the ticket");
    *ticket = session->impl->mark();
  });
}

}  // namespace

TuttiCollective collective_calls() {
  return {TUTTI_EXT_COLLECTIVE, sizeof(TuttiCollective), 1, nullptr, call_unique_id, call_join, call_leave,
          call_all_reduce,      call_broadcast};
}

TuttiSums sums_calls() {
  return {TUTTI_EXT_SUMS,   sizeof(TuttiSums), 1,        nullptr, call_library, call_prepare_sums,
          call_run_and_sum, call_abandon,      call_mark};
}

}  // namespace tutti::sdk
