// Progress on stderr: a bar on a terminal, plain lines otherwise.
#pragma once
#include <chrono>

#include "train/run/trainer.h"

namespace tutti::cli {

/// "1234 samples/s"; with two significant digits below ten.
std::string rate_text(double samples_per_second);
/// "4:05", "1:04:05": hours, minutes and seconds.
std::string clock_text(double seconds);

class ProgressLine {
 public:
  /// `total` steps of the whole run, `batch` samples each; `quiet` shows nothing.
  ProgressLine(int64_t total, int64_t epochs, int64_t batch, bool quiet);
  void show(const Progress& p);
  /// Erases the bar.
  void clear();
  /// Ends the bar's line and prints a line of text.
  void print(const std::string& line);
  /// The same, also if `quiet`: for warnings.
  void warn(const std::string& line);

 private:
  int64_t total_, epochs_, batch_;
  bool quiet_, terminal_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tutti::cli
