// An ONNX model as a file: what read.cpp reads, written.
#pragma once
#include <string>

#include "onnx/model.h"

namespace tutti::onnx {

/// The bytes of a file with that model, of its opset; it must be one that read() takes. `path` is for messages. Throws
/// Error(invalid) for more than the 2 GiB that the format holds.
std::string bytes_of(const Model& model, const std::string& path);
/// Writes the file whole or not at all. Throws Error(invalid) naming the path, what failed and a remedy.
void write(const std::string& path, const Model& model);

}  // namespace tutti::onnx
