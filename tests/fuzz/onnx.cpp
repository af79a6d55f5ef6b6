// ONNX models.
#include "core/base/status.h"
#include "onnx/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::onnx::parse(std::string(reinterpret_cast<const char*>(data), size), "model.onnx");
  } catch (const tutti::Error&) {
  }
  return 0;
}
