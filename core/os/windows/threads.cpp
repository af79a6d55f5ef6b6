#include "core/os/threads.h"

#include <memory>
#include <new>

#include "core/os/held_signals.h"
#include "core/os/of_thread.h"
#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

struct End {
  void (*end)(void*);
  void* value;
  End* before;
};

void WINAPI run_ends(void* last) {
  for (auto* one = static_cast<End*>(last); one;) {
    const std::unique_ptr<End> done(one);
    one = done->before;
    done->end(done->value);
  }
}

/// Windows calls run_ends for it when a thread ends, before it detaches libraries from the thread.
DWORD ends_slot() {
  constexpr DWORD how = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN;
  HMODULE self = nullptr;  // never unloaded: threads call run_ends
  GetModuleHandleExW(how, reinterpret_cast<const wchar_t*>(&run_ends), &self);
  return FlsAlloc(run_ends);
}

}  // namespace

void at_thread_end(void (*end)(void*), void* value) {
  static const DWORD slot = ends_slot();
  std::unique_ptr<End> one(new End{end, value, static_cast<End*>(FlsGetValue(slot))});
  if (slot == FLS_OUT_OF_INDEXES || !FlsSetValue(slot, one.get())) throw std::bad_alloc();
  static_cast<void>(one.release());
}

void sleep_on(Word& word, uint32_t value) { WaitOnAddress(&word, &value, sizeof value, INFINITE); }
void wake_one(Word& word) { WakeByAddressSingle(&word); }
void wake_all(Word& word) { WakeByAddressAll(&word); }

// Of the process's group of up to 64 processors.
bool allowed_cpus(CpuMask& mask) {
  DWORD_PTR process = 0, system = 0;
  mask = {};
  if (!GetProcessAffinityMask(GetCurrentProcess(), &process, &system) || process == 0) return false;
  // The thread's own mask is told only when it is set.
  if (DWORD_PTR own = SetThreadAffinityMask(GetCurrentThread(), process); own != 0) {
    SetThreadAffinityMask(GetCurrentThread(), own);
    process = own;
  }
  mask.words[0] = process;
  return true;
}

void bind_thread(const CpuMask& mask) { SetThreadAffinityMask(GetCurrentThread(), mask.words[0]); }

void name_thread(const std::string& name) {  // since Windows 10 1607
  using Describe = HRESULT(WINAPI*)(HANDLE, const wchar_t*);
  static const auto describe = reinterpret_cast<Describe>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "SetThreadDescription")));
  if (describe) describe(GetCurrentThread(), wide(name).c_str());
}

void lower_thread_priority() { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST); }

ThreadUse thread_use() {
  FILETIME start, end, kernel, user;
  if (!GetThreadTimes(GetCurrentThread(), &start, &end, &kernel, &user)) return {};
  auto ns = [](const FILETIME& t) {
    return static_cast<int64_t>(uint64_t{t.dwHighDateTime} << 32 | t.dwLowDateTime) * 100;
  };
  return {ns(kernel) + ns(user), 0, 0};
}

unsigned forks() { return 0; }

SignalsHeld::SignalsHeld() = default;
SignalsHeld::~SignalsHeld() = default;

}  // namespace tutti::os
