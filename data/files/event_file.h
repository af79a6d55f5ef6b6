// TensorBoard event files: scalars by step, appended record by record, so that readers can follow a run.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/export.h"
#include "data/files/append_file.h"

namespace tutti {

/// Named scalars of one step, such as "loss".
using Scalars = std::map<std::string, double>;

/// One file, "events.out.tfevents.SECONDS.HOST.PID.tutti" in a folder. Records have TFRecord's framing (length, masked
/// CRC-32C of both, https://www.tensorflow.org/tutorials/load_data/tfrecord) and hold tensorflow.Event messages
/// (tensorflow/core/util/event.proto), version "brain.Event:2". Values are stored as f32.
class TUTTI_API EventFile {
 public:
  /// Throws Error(invalid) naming the folder if no file can be created.
  explicit EventFile(const std::string& folder);
  /// Appends one record. `seconds`: since 1970. On failure returns false and sets errno.
  bool add(int64_t step, double seconds, const Scalars& scalars);
  const std::string& path() const { return file_.path(); }

 private:
  bool write(const std::string& event);
  AppendFile file_;
};

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
TUTTI_API uint32_t crc32c(const void* data, size_t bytes);

}  // namespace tutti
