#include "train/host_tensor.h"

#include <fmt/format.h>

#include "core/base/status.h"

namespace tutti {

HostTensor host_tensor_from(const TensorType& type, const void* data, size_t bytes) {
  if (bytes != num_bytes(type))
    throw invalid(fmt::format("{} takes {} bytes, {} were given", to_string(type), num_bytes(type), bytes));
  auto* from = static_cast<const std::byte*>(data);
  return {type, {from, from + bytes}};
}

}  // namespace tutti
