#include "core/base/philox.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that come with the authors' library (Random123, kat_vectors, philox4x32 10).
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  uint32_t f = 0xffffffff;
  EXPECT_EQ(philox4x32({f, f, f, f}, {f, f}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, SeedStepStreamAndBlockAreWordsOfKeyAndCounter) {
  EXPECT_EQ(random_block(0x299f31d0a4093822, 0x13198a2e, 0x03707344, 0x85a308d3243f6a88),
            philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}));
}

}  // namespace
}  // namespace tutti
