// Writes PNG files (ISO/IEC 15948, https://www.w3.org/TR/png-3) of generated images.
#pragma once
#include <string>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// The bytes of a PNG file. Images f32 [count, C, H, W] in [0, 1], C = 1 (grey) or 3 (RGB), become one picture of 8
/// bits per channel: a grid as square as possible, filled row by row, with a black line between adjacent images. Throws
/// Error(invalid) for other tensors; messages call the picture `name`.
TUTTI_API std::string png_grid(const HostTensor& images, const std::string& name);
/// Writes png_grid to a file atomically. Throws Error(invalid) naming the file and the system's reason.
TUTTI_API void write_png_grid(const std::string& path, const HostTensor& images);

}  // namespace tutti
