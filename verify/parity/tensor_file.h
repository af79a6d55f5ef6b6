// Common code of record and replay files: checkpoints with a format name and texts in their metadata.
#pragma once
#include <functional>

#include "data/files/checkpoint.h"
#include "graph/eval.h"

namespace tutti::parity {

/// The metadata text of a key. Throws Error(invalid) if it is missing.
const std::string& metadata(const Checkpoint& c, const char* key);

/// Adds a tensor, stored in its dtype.
void put(Checkpoint& c, const std::string& name, const Tensor& t);

/// A file format and its names in messages.
struct FileKind {
  const char* format;  ///< its metadata "format"
  const char* what;    ///< "parity record"
  const char* writer;  ///< the command that writes it, in a message: "`tutti bisect`"
};

/// Writes the file with the kind's format and a checksum of everything in it. Throws Error(invalid).
void write_tensor_file(const std::string& path, const FileKind& kind, Checkpoint c);

/// Reads a file of that kind and passes it to `take`. Throws Error(invalid) naming the file and the problem, also for
/// errors thrown by `take` and for a wrong checksum; files without a checksum are accepted.
void read_tensor_file(const std::string& path, const FileKind& kind,
                      const std::function<void(const Checkpoint&)>& take);

}  // namespace tutti::parity
