// Transforms of training images, listed in --augment. Each is one file of data/transforms.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace tutti::data {

/// An image between transforms: f32 [channels, height, width]. u8 pixels keep their range 0 to 255 and are rounded
/// once, after the last transform.
struct Image {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values = {};
  float least = -std::numeric_limits<float>::infinity(), most = std::numeric_limits<float>::infinity();

  float& at(int64_t c, int64_t y, int64_t x) { return values[static_cast<size_t>((c * height + y) * width + x)]; }
  float at(int64_t c, int64_t y, int64_t x) const { return values[static_cast<size_t>((c * height + y) * width + x)]; }
};

/// The random numbers of one transform for one sample: Philox with the seed as key and (sample, epoch, index of the
/// transform) as counter. At most 1024 of them.
class Draws {
 public:
  Draws(uint64_t seed, uint32_t epoch, uint32_t place, int32_t sample)
      : seed_(seed), epoch_(epoch), place_(place), sample_(sample) {}
  uint32_t word();
  /// In [0, 1), with 24 bits.
  float unit() { return static_cast<float>(word() >> 8) * 0x1p-24f; }
  /// An integer in [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(uint64_t{word()} * static_cast<uint64_t>(n) >> 32); }
  /// In [low, high).
  float between(float low, float high) { return low + (high - low) * unit(); }

 private:
  uint64_t seed_;
  uint32_t epoch_, place_;
  int32_t sample_;
  uint32_t drawn_ = 0;
  std::array<uint32_t, 4> block_ = {};
};

struct Transform {
  std::string name;
  std::string doc;             ///< "crop[:4]: …"
  double usual = 0;            ///< default of the number
  double least = 0, most = 0;  ///< range of the number; equal: the transform takes no number
  bool whole = false;          ///< the number must be an integer
  /// The number must be less than this for images of that size, so that some of the image remains. Null: no limit.
  int64_t (*below)(int64_t height, int64_t width) = nullptr;
  void (*apply)(Image& image, double number, Draws& draws);
};

/// Sorted by name.
std::span<const Transform* const> all_transforms();

}  // namespace tutti::data
