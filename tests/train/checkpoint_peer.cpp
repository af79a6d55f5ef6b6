// Reads one checkpoint and writes it to another path: what checkpoint_peer.py holds against the Python library.
#include <cstdio>

#include "core/base/status.h"
#include "data/files/checkpoint.h"

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  tutti::write_checkpoint(argv[2], tutti::read_checkpoint(argv[1]));
} catch (const tutti::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
