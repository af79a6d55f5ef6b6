#include "core/os/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace tutti::os {
namespace {

int descriptor(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

bool is_terminal(Stream stream) { return isatty(descriptor(stream)); }

int terminal_width(Stream stream) {
  winsize window{};
  return ioctl(descriptor(stream), TIOCGWINSZ, &window) == 0 ? window.ws_col : 0;
}

void prepare_terminal() {}

void write_text(Stream stream, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream == Stream::out ? stdout : stderr);
}

}  // namespace tutti::os
