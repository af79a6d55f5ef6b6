// TensorBoard's event files: scalars over steps, appended record by record, so that a reader follows a run.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/export.h"
#include "data/files/append_file.h"

namespace tutti {

/// Named scalars of one step, such as "loss".
using Scalars = std::map<std::string, double>;

/// One file, "events.out.tfevents.SECONDS.HOST.PID.tutti" in a folder. Records are framed as TFRecord frames them
/// (length, masked CRC-32C of both, https://www.tensorflow.org/tutorials/load_data/tfrecord) and hold tensorflow.Event
/// messages (tensorflow/core/util/event.proto), version "brain.Event:2". Values are stored as f32.
class TUTTI_API EventFile {
 public:
  /// Throws Error(invalid) naming the folder where no file can be made.
  explicit EventFile(const std::string& folder);
  /// Appends one record. `seconds`: since 1970. False, and errno, where it could not be written whole.
  bool add(int64_t step, double seconds, const Scalars& scalars);
  const std::string& path() const { return file_.path(); }

 private:
  bool write(const std::string& event);
  AppendFile file_;
};

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of some bytes.
TUTTI_API uint32_t crc32c(const void* data, size_t bytes);

}  // namespace tutti
