// What records and replay files share: checkpoints with a format's name and texts in their metadata.
#pragma once
#include <functional>

#include "graph/eval.h"
#include "train/checkpoint.h"

namespace tutti::parity {

/// The text under that key. Throws Error(invalid) where there is none.
const std::string& metadata(const Checkpoint& c, const char* key);

/// Adds a tensor in the bytes of its dtype.
void put(Checkpoint& c, const std::string& name, const Tensor& t);

/// What a file is called in messages.
struct FileKind {
  const char* format;  ///< its metadata "format"
  const char* what;    ///< "parity record"
  const char* remedy;
};

/// Reads a file of that kind and hands it to `take`. Throws Error(invalid) naming the file and what is wrong, also with
/// what `take` throws.
void read_tensor_file(const std::string& path, const FileKind& kind,
                      const std::function<void(const Checkpoint&)>& take);

}  // namespace tutti::parity
