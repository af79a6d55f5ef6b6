// Inputs and outputs of ONNX models as text.
#pragma once
#include <fmt/format.h>

#include <string>

#include "onnx/model.h"

namespace tutti::cli {

/// "f32", or the format's name of a type that Tutti lacks.
inline std::string dtype_text(const onnx::Port& p) {
  auto dtype = onnx::dtype_of(p.type);
  return dtype ? std::string(name(*dtype)) : onnx::element_name(p.type);
}

/// "f32[batch, 1, 28, 28]".
inline std::string type_text(const onnx::Port& p) {
  std::string sizes;
  for (size_t k = 0; k < p.shape.size(); ++k) {
    const std::string& open = p.symbols[k].empty() ? "?" : p.symbols[k];
    sizes += (k ? ", " : "") + (p.shape[k] < 0 ? open : std::to_string(p.shape[k]));
  }
  return fmt::format("{}[{}]", dtype_text(p), sizes);
}

}  // namespace tutti::cli
