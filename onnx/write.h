// Writes an ONNX model to a file that read() accepts.
#pragma once
#include <string>

#include "onnx/model.h"

namespace tutti::onnx {

/// The bytes of a file with that model, of its opset; read() must accept the model. `path` is for messages. Throws
/// Error(invalid) for more than 2 GiB, the format's limit.
std::string bytes_of(const Model& model, const std::string& path);
/// Writes the file atomically. Throws Error(invalid) naming the path, what failed and a remedy.
void write(const std::string& path, const Model& model);

/// The bytes of the ONNX file `original` in which initializers have other values, by name; f32. External weights move
/// into the file. Throws as bytes_of() does.
std::string with_weights(const std::string& original, const HostTensors& weights, const std::string& path);

}  // namespace tutti::onnx
