// A peer: another framework in a Python child process, which opens the same cases and times rounds of them on request,
// so that it takes turns with the devices.
//
// Protocol: one JSON object per line. Request {"do": "open", "case": {…}}, {"do": "run", "runs": n}, {"do": "close"};
// answers {"ok": true, …} or {"error": "…", "declined": bool}. bench/peers/peer_rounds.py is the peer's side.
#pragma once
#include "bench/lane.h"

namespace tutti::bench {

struct PeerOptions {
  std::string name;    ///< "torch" or "tinygrad"
  std::string python;  ///< interpreter, searched in PATH unless it contains a slash
  std::string script;  ///< peer_rounds.py
  int threads = 0;     ///< CPU threads of the peer
  bool cuda = false;   ///< adds a lane on the first CUDA device, if the peer has one
};

/// The peer's lanes ("torch:cpu") in one process. Throws Error(invalid) with the reason if it cannot start: no
/// interpreter, missing package.
std::vector<std::unique_ptr<Lane>> peer_lanes(const PeerOptions& options);

}  // namespace tutti::bench
