// Floats as the elements or blocks of a GGUF type.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/files/gguf_types.h"
#include "data/host_tensor.h"

namespace tutti {

/// The types that gguf_bytes() writes: f32, f16, bf16, q8_0 and q4_k.
TUTTI_API const std::vector<const GgufType*>& writable_gguf_types();
/// The one of that name, or nullptr.
TUTTI_API const GgufType* writable_gguf_type(const std::string& name);
/// The tensor's elements in that type; its last dimension is a multiple of the type's block. q8_0 gives the bytes that
/// ggml and its Python package give. `name` is for messages. Throws Error(invalid) for elements that are not finite or
/// do not fit the type.
TUTTI_API std::string gguf_bytes(const HostTensor& floats, const GgufType& type, const std::string& name);

}  // namespace tutti
