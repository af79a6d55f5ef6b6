// PNG files (ISO/IEC 15948, https://www.w3.org/TR/png-3) of images that a model made.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// Writes images f32 [count, C, H, W] in [0, 1], C = 1 (grey) or 3 (RGB), as one picture of 8 bits per channel: a grid
/// as square as their number allows, filled row by row, with a line of black between neighbours. The file appears whole
/// or not at all. Throws Error(invalid) naming the file and the system's reason, and for other tensors.
TUTTI_API void write_png_grid(const std::string& path, const HostTensor& images);

}  // namespace tutti
