// A session's part in a group of ranks.
#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>

#include "core/abi/tutti_sums.h"
#include "core/runtime/session_call.h"

namespace tutti {
namespace {

using namespace std::chrono_literals;

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> all;
  for (const std::string& name : names) all.push_back(name.c_str());
  return all;
}

TuttiCollective collectives_of(const TuttiPlugin& table) {
  return find_extension<TuttiCollective>(table.extensions, TUTTI_EXT_COLLECTIVE);
}
TuttiSums sums_of(const TuttiPlugin& table) { return find_extension<TuttiSums>(table.extensions, TUTTI_EXT_SUMS); }

/// A function of an extension. Throws Error(declined) where the plugin does not have it.
template <class F>
F there(F function) {
  if (!function) throw Error(Code::declined, "its plugin has no collectives of its own");
  return function;
}

}  // namespace

std::string Session::group_library() {
  const auto library = there(sums_of(*table_).library);
  there(collectives_of(*table_).broadcast);
  const char* text = nullptr;
  call("library", [&](TuttiError* e) { return library(handle_, &text, e); });
  return clean_text(text);
}

Session::GroupId Session::unique_id() {
  GroupId id = {};
  const auto unique_id = there(collectives_of(*table_).unique_id);
  call("unique_id", [&](TuttiError* e) { return unique_id(id.data(), e); });
  return id;
}

void Session::join(const GroupId& id, uint32_t rank, uint32_t ranks, Company company) {
  // of this session, which the thread may outlive, it has only the plugin's handle
  std::packaged_task<std::pair<int32_t, TuttiError>()> joining(
      [join = there(collectives_of(*table_).join), handle = handle_, id, rank, ranks] {
        TuttiError error = empty_error();
        int32_t code = guarded(error, [&](TuttiError* e) { return join(handle, id.data(), rank, ranks, e); });
        return std::pair(code, error);
      });
  std::future<std::pair<int32_t, TuttiError>> joined = joining.get_future();
  std::thread thread(std::move(joining));
  const auto begun = std::chrono::steady_clock::now();
  try {
    while (joined.wait_for(20ms) != std::future_status::ready)
      if (company) company(begun);
  } catch (...) {
    given_up_ = true;
    thread.detach();
    throw;
  }
  thread.join();
  if (auto [code, error] = joined.get(); code != TUTTI_OK) fail(code, error, "join", nullptr);
  company_ = company ? std::move(company) : [](auto) {};
}

void Session::leave() {
  settle();
  const auto leave = there(collectives_of(*table_).leave);
  call("leave", [&](TuttiError* e) { return leave(handle_, e); });
  company_ = {};
}

void Session::abandon() {
  const auto abandon = there(sums_of(*table_).abandon);
  call("abandon", [&](TuttiError* e) { return abandon(handle_, e); });
}

void Session::all_reduce(const std::vector<std::string>& states) {
  const auto all_reduce = there(collectives_of(*table_).all_reduce);
  call("all_reduce", [&](TuttiError* e) {
    return all_reduce(handle_, pointers(states).data(), static_cast<uint32_t>(states.size()), e);
  });
}

void Session::broadcast(const std::vector<std::string>& states, uint32_t root) {
  const auto broadcast = there(collectives_of(*table_).broadcast);
  call("broadcast", [&](TuttiError* e) {
    return broadcast(handle_, pointers(states).data(), static_cast<uint32_t>(states.size()), root, e);
  });
}

void Session::wait_in_company(uint64_t ticket) {
  constexpr uint64_t patience = 50'000'000;  // ns
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    TuttiError error = empty_error();
    int32_t code = guarded(error, [&](TuttiError* e) { return table_->wait(handle_, ticket, patience, e); });
    if (code == TUTTI_OK) return;
    if (code != TUTTI_TIMEOUT) fail(code, error, "wait", nullptr);
    try {
      company_(begun);
    } catch (...) {
      const auto abandon = sums_of(*table_).abandon;
      TuttiError ignored = empty_error();
      if (abandon) guarded(ignored, [&](TuttiError* e) { return abandon(handle_, e); });
      throw;
    }
  }
}

void Session::settle() {
  if (!company_) return;
  uint64_t ticket = 0;
  const auto mark = there(sums_of(*table_).mark);
  call("mark", [&](TuttiError* e) { return mark(handle_, &ticket, e); });
  wait_in_company(ticket);
}

bool Executable::prepare_sums(const std::vector<std::vector<std::string>>& groups) {
  std::vector<std::string> names;
  std::vector<uint32_t> counts;
  for (const auto& group : groups) {
    names.insert(names.end(), group.begin(), group.end());
    counts.push_back(static_cast<uint32_t>(group.size()));
  }
  session_->settle();
  try {
    const auto prepare_sums = there(sums_of(*session_->table_).prepare_sums);
    session_->call("prepare_sums", [&](TuttiError* e) {
      return prepare_sums(handle_, pointers(names).data(), counts.data(), static_cast<uint32_t>(counts.size()), e);
    });
  } catch (const Error& e) {
    if (e.code != Code::declined) throw;
    return false;
  }
  return true;
}

uint64_t Executable::run_and_sum() {
  uint64_t ticket = 0;
  const auto run_and_sum = there(sums_of(*session_->table_).run_and_sum);
  session_->call("run", [&](TuttiError* e) { return run_and_sum(handle_, &ticket, e); });
  run_before_ = std::exchange(last_run_, ticket);
  return ticket;
}

}  // namespace tutti
