#include "core/abi/growth.h"

#include <gtest/gtest.h>

extern "C" const size_t v1_sizes[];  // of the recorded header

namespace tutti {
namespace {

TEST(Growth, VersionOnesSizesAreThoseOfItsHeader) {
  const size_t sizes[] = {v1_size<TuttiError>,   v1_size<TuttiExt>,         v1_size<TuttiValue>,  v1_size<TuttiNode>,
                          v1_size<TuttiProgram>, v1_size<TuttiDevice>,      v1_size<TuttiMemory>, v1_size<TuttiOptions>,
                          v1_size<TuttiHost>,    v1_size<TuttiPlugin>,      v1_size<TuttiArray>,  v1_size<TuttiSink>,
                          v1_size<TuttiAttr>,    v1_size<TuttiInstr>,       v1_size<TuttiState>,  v1_size<TuttiGroup>,
                          v1_size<TuttiPair>};
  for (size_t i = 0; i < std::size(sizes); ++i) EXPECT_EQ(sizes[i], v1_sizes[i]) << i;
}

TEST(Growth, ExtensionsBeganWithTheSizesOnRecord) {  // core/abi/layout-1.json
  EXPECT_EQ(v1_size<TuttiNodeTime>, 40u);
  EXPECT_EQ(v1_size<TuttiProfile>, 32u);
  EXPECT_EQ(v1_size<TuttiNativeState>, 56u);
  EXPECT_EQ(v1_size<TuttiNative>, 32u);
  EXPECT_EQ(v1_size<TuttiCollective>, 64u);
}

TEST(Growth, WhatIsMissingIsZeroAndWhatIsMoreIsCut) {
  struct Larger {
    TuttiOptions base;
    uint64_t more;
  } larger = {{sizeof(Larger), 3, 5}, ~uint64_t{0}};
  auto all = zero_extended<TuttiOptions>(&larger, sizeof larger);
  EXPECT_EQ(all.flags, 3u);
  EXPECT_EQ(all.tuning_bytes, 5u);
  auto part = zero_extended<TuttiOptions>(&larger, offsetof(TuttiOptions, tuning_bytes));
  EXPECT_EQ(part.flags, 3u);
  EXPECT_EQ(part.tuning_bytes, 0u);
  EXPECT_EQ(zero_extended<TuttiOptions>(nullptr, 0).size, 0u);
}

int32_t times(TuttiExecutable*, TuttiArray*, TuttiError*) { return TUTTI_OK; }

TEST(Growth, ExtensionsAreFoundByTheirIdAndReadByTheirSize) {
  TuttiProfile profile = {TUTTI_EXT_PROFILE, sizeof(TuttiProfile), 1, nullptr, times};
  TuttiExt unknown = {"of.tomorrow", sizeof(TuttiExt), 1, reinterpret_cast<const TuttiExt*>(&profile)};
  EXPECT_EQ(find_extension<TuttiProfile>(&unknown, TUTTI_EXT_PROFILE).times, times);
  EXPECT_EQ(find_extension<TuttiNative>(&unknown, TUTTI_EXT_NATIVE).id, nullptr);
  EXPECT_EQ(find_extension<TuttiNative>(nullptr, TUTTI_EXT_NATIVE).id, nullptr);
  profile.size = offsetof(TuttiProfile, times);
  EXPECT_EQ(find_extension<TuttiProfile>(&unknown, TUTTI_EXT_PROFILE).times, nullptr);
}

}  // namespace
}  // namespace tutti
