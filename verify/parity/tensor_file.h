// What records and replay files share: checkpoints with a format's name and texts in their metadata.
#pragma once
#include <functional>

#include "data/files/checkpoint.h"
#include "graph/eval.h"

namespace tutti::parity {

/// The text under that key. Throws Error(invalid) where there is none.
const std::string& metadata(const Checkpoint& c, const char* key);

/// Adds a tensor in the bytes of its dtype.
void put(Checkpoint& c, const std::string& name, const Tensor& t);

/// What a file is called in messages.
struct FileKind {
  const char* format;  ///< its metadata "format"
  const char* what;    ///< "parity record"
  const char* writer;  ///< the command that writes it, in a message: "`tutti bisect`"
};

/// Writes the file with the kind's format and a checksum of everything in it. Throws Error(invalid).
void write_tensor_file(const std::string& path, const FileKind& kind, Checkpoint c);

/// Reads a file of that kind and hands it to `take`. Throws Error(invalid) naming the file and what is wrong, also with
/// what `take` throws, and where the checksum is another one; a file without one is taken.
void read_tensor_file(const std::string& path, const FileKind& kind,
                      const std::function<void(const Checkpoint&)>& take);

}  // namespace tutti::parity
