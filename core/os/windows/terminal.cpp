#include "core/os/terminal.h"

#include <cstdlib>

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

HANDLE handle_of(Stream stream) { return GetStdHandle(stream == Stream::out ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE); }

UINT code_page_before = 0;

}  // namespace

bool is_terminal(Stream stream) {
  DWORD mode = 0;
  return GetConsoleMode(handle_of(stream), &mode) && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

int terminal_width(Stream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  return GetConsoleScreenBufferInfo(handle_of(stream), &info) ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

void prepare_terminal() {
  for (Stream stream : {Stream::out, Stream::err}) {
    DWORD mode = 0;
    if (GetConsoleMode(handle_of(stream), &mode))
      SetConsoleMode(handle_of(stream), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
  code_page_before = GetConsoleOutputCP();  // belongs to the console, and stays after this process
  if (code_page_before == 0 || code_page_before == CP_UTF8 || !SetConsoleOutputCP(CP_UTF8)) return;
  std::atexit([] { SetConsoleOutputCP(code_page_before); });
}

}  // namespace tutti::os
