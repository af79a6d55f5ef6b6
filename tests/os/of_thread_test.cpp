// Objects of a thread's own.
#include "core/os/of_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace tutti::os {
namespace {

std::atomic<int> alive{0}, whole{0};

struct Counted {
  std::string text = std::string(1000, 'x');
  int last = 0;
  Counted() { ++alive; }
  ~Counted() {
    --alive;
    whole += text == std::string(1000, 'x') && last == 7;
  }
};

struct Other {
  std::string* at = nullptr;
  ~Other() {
    if (at) *at += "other ";
  }
};
struct Later {
  std::string* at = nullptr;
  ~Later() {
    if (at) *at += "later ";
  }
};

TEST(OfThread, EachThreadHasOneUntilItEnds) {
  alive = whole = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k)
      threads.emplace_back([] {
        Counted& mine = of_this_thread<Counted>();
        EXPECT_EQ(mine.last, 0);
        mine.last = 7;
        EXPECT_EQ(&of_this_thread<Counted>(), &mine);
        EXPECT_GE(alive, 1);
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(alive, 0);
  }
  EXPECT_EQ(whole, 200);
}

TEST(OfThread, TheLastMadeIsDestroyedFirst) {
  std::string order;
  std::thread([&] {
    of_this_thread<Other>().at = &order;
    of_this_thread<Later>().at = &order;
  }).join();
  EXPECT_EQ(order, "later other ");
}

}  // namespace
}  // namespace tutti::os
