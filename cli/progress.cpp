#include "cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/print.h"
#include "core/os/terminal.h"

namespace tutti::cli {
namespace {

constexpr int bar_width = 24;
constexpr std::chrono::seconds plain_interval{10};

}  // namespace

std::string rate_text(double samples_per_second) {
  if (samples_per_second > 0 && samples_per_second < 9.95) return fmt::format("{:.2g} samples/s", samples_per_second);
  return fmt::format("{:.0f} samples/s", samples_per_second);
}

std::string clock_text(double seconds) {
  auto s = std::llround(seconds);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

ProgressLine::ProgressLine(int64_t total, int64_t epochs, int64_t batch, bool quiet)
    : total_(total),
      epochs_(epochs),
      batch_(batch),
      quiet_(quiet),
      terminal_(os::is_terminal(os::Stream::err)),
      last_(std::chrono::steady_clock::now()) {}

void ProgressLine::show(const Progress& p) {
  if (quiet_) return;
  auto now = std::chrono::steady_clock::now();
  if (!terminal_ && now - last_ < plain_interval) return;
  last_ = now;
  double share = total_ > 0 ? static_cast<double>(p.step) / static_cast<double>(total_) : 0;
  std::string text = fmt::format("epoch {}/{}  step {}/{}  loss {:.4f}  {}", p.epoch + 1, epochs_, p.step, total_,
                                 p.loss, rate_text(p.samples_per_second));
  if (p.samples_per_second > 0)
    text += "  " + clock_text(static_cast<double>((total_ - p.step) * batch_) / p.samples_per_second) + " left";
  if (!terminal_) {
    print_err("{}\n", text);
    return;
  }
  auto full = static_cast<int>(share * bar_width);
  text = fmt::format("[{}{}] {:3.0f} %  {}", std::string(static_cast<size_t>(full), '='),
                     std::string(static_cast<size_t>(bar_width - full), ' '), 100 * share, text);
  if (int width = os::terminal_width(os::Stream::err); width > 1)
    text.resize(std::min(text.size(), static_cast<size_t>(width) - 1));  // a wrapped line could not be erased
  os::write_text(os::Stream::err, "\r\033[K" + text);
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (terminal_ && !quiet_) os::write_text(os::Stream::err, "\r\033[K");
}

void ProgressLine::print(const std::string& line) {
  if (!quiet_) warn(line);
}

void ProgressLine::warn(const std::string& line) {
  clear();
  print_err("{}\n", line);
}

}  // namespace tutti::cli
