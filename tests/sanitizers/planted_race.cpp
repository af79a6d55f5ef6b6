// A data race on purpose: under the tsan preset it must be reported, or the preset's settings hide races.
#include <thread>

int main() {
  int shared = 0;
  std::thread a([&] { ++shared; }), b([&] { ++shared; });
  a.join();
  b.join();
  return shared == 0;
}
