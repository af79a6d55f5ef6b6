#include "core/os/signals.h"

#include <atomic>
#include <cstdlib>

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

std::atomic<bool> signalled{false}, caught{false};

// Runs in a thread of its own.
BOOL WINAPI on_request(DWORD kind) {
  if (!caught.load()) return FALSE;
  const bool again = signalled.exchange(true);
  if (kind == CTRL_C_EVENT || kind == CTRL_BREAK_EVENT) return !again;
  Sleep(
      INFINITE);  // the window closes, or the user logs out: the process ends when this returns, or after some seconds
  return TRUE;
}

}  // namespace

void prepare_signals() { SetConsoleCtrlHandler(on_request, TRUE); }

void catch_signals() { caught = true; }
void release_signals() { caught = false; }
bool interrupted() { return signalled.load(); }
void end_by_closed_pipe() { std::_Exit(1); }

}  // namespace tutti::os
