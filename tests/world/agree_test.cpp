#include "core/world/agree.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Agree, NothingDiffersWhereAllIsEqual) {
  EXPECT_EQ(differences({{{"batch", "64"}, {"seed", "1"}}, {{"batch", "64"}, {"seed", "1"}}}), "");
}

TEST(Agree, ListsEveryDifferenceWithItsRanks) {
  std::string text = differences({{{"batch", "64"}, {"seed", "1"}, {"lora", "8"}},
                                  {{"batch", "32"}, {"seed", "1"}},
                                  {{"batch", "64"}, {"seed", ""}}});
  EXPECT_EQ(text,
            "\n  batch: 64 (rank 0, 2), 32 (rank 1)"
            "\n  seed: 1 (rank 0, 1), \"\" (rank 2)"
            "\n  lora: 8 (rank 0), not given (rank 1, 2)");
}

TEST(Agree, LongValuesThatDifferOnlyAtTheirEndsDiffer) {
  std::string a(1000, 'a'), b = a + "b";
  EXPECT_NE(differences({{{"model", a}}, {{"model", b}}}), "");
}

}  // namespace
}  // namespace tutti
