// A peer beside the devices: another framework in a Python process of its own, which opens the same cases and times
// rounds of them when it is asked to, so that it takes its turns like a device.
//
// Protocol: one JSON object per line. Request {"do": "open", "case": {…}}, {"do": "run", "runs": n}, {"do": "close"};
// answers {"ok": true, …} or {"error": "…", "declined": bool}. bench/peers/peer_rounds.py is the other end.
#pragma once
#include "bench/lane.h"

namespace tutti::bench {

struct PeerOptions {
  std::string name;    ///< "torch" or "tinygrad"
  std::string python;  ///< an interpreter, looked up in PATH unless it has a slash
  std::string script;  ///< peer_rounds.py
  int threads = 0;     ///< of the peer's CPU work
  bool cuda = false;   ///< also a lane on the first CUDA device, where the peer sees one
};

/// The peer's lanes ("torch:cpu"), over one process. Throws Error(invalid) saying why there is none: no interpreter, no
/// such package.
std::vector<std::unique_ptr<Lane>> peer_lanes(const PeerOptions& options);

}  // namespace tutti::bench
