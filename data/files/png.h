// PNG files (ISO/IEC 15948, https://www.w3.org/TR/png-3) of images that a model made.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// A file's bytes: images f32 [count, C, H, W] in [0, 1], C = 1 (grey) or 3 (RGB), as one picture of 8 bits per
/// channel, a grid as square as their number allows, filled row by row, with a line of black between neighbours. Throws
/// Error(invalid) for other tensors; `name`: of the picture, in messages.
TUTTI_API std::string png_grid(const HostTensor& images, const std::string& name);
/// Writes that into a file, which appears whole or not at all. Throws Error(invalid) naming the file and the system's
/// reason.
TUTTI_API void write_png_grid(const std::string& path, const HostTensor& images);

}  // namespace tutti
