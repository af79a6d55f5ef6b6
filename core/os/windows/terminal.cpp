#include "core/os/terminal.h"

#include <algorithm>
#include <cstdio>

#include "core/os/windows/text.h"

namespace tutti::os {
namespace {

std::FILE* file_of(Stream stream) { return stream == Stream::out ? stdout : stderr; }
HANDLE handle_of(Stream stream) { return os::handle_of(_fileno(file_of(stream))); }

/// The most UTF-16 units of one call: older consoles take 64 KiB.
constexpr size_t most_units = 16384;

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
}

void write_text(Stream stream, std::string_view text) {
  std::FILE* file = file_of(stream);
  HANDLE console = handle_of(stream);
  DWORD mode = 0;
  if (!GetConsoleMode(console, &mode)) {
    std::fwrite(text.data(), 1, text.size(), file);
    return;
  }
  std::fflush(file);
  const std::wstring units = wide(text);
  for (size_t at = 0, count = 0; at < units.size(); at += count) {
    count = std::min(units.size() - at, most_units);
    if (at + count < units.size() && IS_HIGH_SURROGATE(units[at + count - 1])) --count;
    DWORD written = 0;
    if (!WriteConsoleW(console, units.data() + at, static_cast<DWORD>(count), &written, nullptr)) return;
  }
}

}  // namespace tutti::os
