// Written by scripts/collect.py from data/transforms/.
// clang-format off
#include "data/transform.h"

namespace tutti::data {

extern const Transform crop_transform;
extern const Transform cutout_transform;
extern const Transform flip_transform;
extern const Transform jitter_transform;
extern const Transform rotate_transform;
static constexpr const Transform* records[] = {
    &crop_transform,
    &cutout_transform,
    &flip_transform,
    &jitter_transform,
    &rotate_transform,
};

std::span<const Transform* const> all_transforms() { return records; }

}  // namespace tutti::data
