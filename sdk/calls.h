// What the files with the C calls of a plugin's table share.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "core/abi/growth.h"
#include "sdk/plugin.h"

struct TuttiExecutable {
  TuttiSession* session;
  std::unique_ptr<tutti::sdk::Executable> impl;
  size_t feeds;
  std::set<std::string> states;  // of the program
  bool prepared = false, staged = false, profiled = false, summed = false;
  std::vector<tutti::sdk::KernelTime> times;  // last result of `times`
  std::vector<TuttiNodeTime> raw_times;
};

struct TuttiSession {
  std::unique_ptr<tutti::sdk::Session> impl;
  std::vector<std::unique_ptr<TuttiExecutable>> executables;
  std::string group_library;                // last result of `library`
  ~TuttiSession() { executables.clear(); }  // destroyed before the session that they use
};

namespace tutti::sdk {

/// Whether a versioned struct is large enough to have `field`.
#define TUTTI_HAS(pointer, field) \
  ((pointer)->size >=             \
   offsetof(std::remove_cv_t<std::remove_pointer_t<decltype(pointer)>>, field) + sizeof((pointer)->field))

/// Fills the caller's struct up to its size; truncates the text at a UTF-8 character boundary. Allocates nothing.
inline int32_t report(TuttiError* error, int32_t code, uint32_t node,
                      std::initializer_list<std::string_view> parts) noexcept {
  if (!error) return code;
  if (TUTTI_HAS(error, code)) error->code = code;
  if (TUTTI_HAS(error, node)) error->node = node;
  size_t start = offsetof(TuttiError, message), used = 0;
  if (error->size <= start) return code;
  size_t room = std::min(error->size - start, sizeof error->message) - 1;
  for (std::string_view part : parts) {
    size_t n = std::min(part.size(), room - used);
    if (n < part.size())
      while (n > 0 && (static_cast<unsigned char>(part[n]) & 0xC0) == 0x80) --n;
    std::memcpy(error->message + used, part.data(), n);
    used += n;
    if (n < part.size()) break;
  }
  error->message[used] = 0;
  return code;
}

inline int32_t report(TuttiError* error, const Error& e, uint32_t node) noexcept {
  auto code = e.code == Code::ok ? TUTTI_INTERNAL : static_cast<int32_t>(e.code);
  return report(error, code, node, {e.what(), e.remedy.empty() ? "" : "; ", e.remedy});
}

/// Runs a call's body and converts exceptions to the ABI's code and text.
template <class F>
int32_t fence(TuttiError* error, F&& body) noexcept {
  try {
    body();
    return TUTTI_OK;
  } catch (const NodeError& e) {
    return report(error, e, e.node);
  } catch (const Error& e) {
    return report(error, e, TUTTI_NONE);
  } catch (const std::bad_alloc&) {
    return report(error, TUTTI_NO_MEMORY, TUTTI_NONE, {"out of host memory"});
  } catch (const std::exception& e) {
    return report(error, TUTTI_INTERNAL, TUTTI_NONE, {e.what()});
  } catch (...) {
    return report(error, TUTTI_INTERNAL, TUTTI_NONE, {"an exception of an unknown type"});
  }
}

inline void need(const void* pointer, const char* call, const char* what) {
  if (!pointer) throw invalid(fmt::format("{}: {} is NULL", call, what));
}

inline void need_prepared(const TuttiExecutable* executable, const char* call) {
  need(executable, call, "the executable");
  if (!executable->prepared)
    throw invalid(fmt::format("{}: the executable has no memory yet", call), "call prepare first");
}

/// The extensions tutti.collective and tutti.sums, whose calls are in group_calls.cpp.
TuttiCollective collective_calls();
TuttiSums sums_calls();
/// The plugin of this library.
Plugin& this_plugin();

}  // namespace tutti::sdk
