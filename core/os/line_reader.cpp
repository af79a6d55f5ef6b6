#include <algorithm>

#include "core/os/file.h"
#include "core/os/process.h"

namespace tutti::os {

Deadline deadline_in(double seconds) {
  std::chrono::duration<double> left(std::min(seconds, 1e9));  // larger values would overflow
  return Deadline::clock::now() + std::chrono::duration_cast<Deadline::duration>(left);
}

LineReader::Result LineReader::next(int from, std::string& text, Deadline end) {
  for (;;) {
    if (size_t at = pending_.find('\n'); at != std::string::npos) {
      text = pending_.substr(0, at);
      pending_.erase(0, at + 1);
      return line;
    }
    if (!wait_readable({from}, end)[0]) return silent;
    char part[4096];
    const int64_t n = read_some(from, part, sizeof part);
    if (n <= 0) return closed;
    pending_.append(part, static_cast<size_t>(n));
  }
}

bool Answers::send(const std::string& text) const { return write_all(to_, text.data(), text.size()); }

}  // namespace tutti::os
