// A libnccl.so.2 for the software CUDA device: sums and broadcasts between processes of one machine, in the order of
// the ranks, as work of the device's streams. Its prototypes are those of nccl.h, which the compiler compares. It finds
// fault with ranks that make different calls, two collectives at a time, graphs that were not captured together, and
// graphs that outlive their communicator.
//
// SOFTNCCL_FAIL=CALL:RESULT:AFTER:RANK   that call (async: what ncclCommGetAsyncError reports) gives this ncclResult_t
//                                        after so many good ones, on that rank
// SOFTNCCL_VERSION=21304                 what ncclGetVersion says
#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/softcuda/work.h"
#include "tests/softnccl/channel.h"

using namespace tutti::softnccl;  // NOLINT(google-build-using-namespace): the functions are global

/// A communicator, and what is under way in it.
struct ncclComm {
  Shared* shared = nullptr;
  uint32_t rank = 0, ranks = 0;
  uint64_t exchanges = 0, captures = 0;
  std::atomic<uint64_t> in_graphs = 0;
  const void* running = nullptr;  // the collective that is under way
  std::atomic<bool> aborted = false, destroyed = false;
  std::atomic<ncclResult_t> failed = ncclSuccess;
};

namespace {

struct Part {
  const void* from;
  void* to;
  size_t count;
};

/// The collectives of a group call, and how far they are.
struct Collective {
  ~Collective() { comm->in_graphs -= header.graph != 0; }
  std::shared_ptr<ncclComm> comm;
  Header header;
  size_t element = 0;
  std::vector<Part> parts;
  size_t part = 0, done = 0;  // done: elements of the part
  bool posted = false;
};

int rank_here = -1, depth = 0;
std::vector<std::pair<CUstream, std::unique_ptr<Collective>>> grouped;
std::map<ncclComm*, std::shared_ptr<ncclComm>> comms;
std::string last_error;

ncclResult_t refuse(ncclResult_t result, const std::string& why) {
  last_error = why;
  std::fprintf(stderr, "softnccl: rank %d: %s\n", rank_here, why.c_str());
  return result;
}

/// The result that SOFTNCCL_FAIL wants of this call now.
ncclResult_t wanted(const std::string& call) {
  const char* text = std::getenv("SOFTNCCL_FAIL");
  if (!text) return ncclSuccess;
  std::string rest(text), name = rest.substr(0, rest.find(':'));
  int result = 0, after = 0, rank = 0;
  if (std::sscanf(text + name.size(), ":%d:%d:%d", &result, &after, &rank) != 3)
    throw std::invalid_argument("SOFTNCCL_FAIL");
  static std::map<std::string, int> calls;
  if (name != call || rank != rank_here || calls[call]++ < after) return ncclSuccess;
  last_error = "as the test wanted";
  return static_cast<ncclResult_t>(result);
}

#define OR_FAIL(name) \
  if (ncclResult_t failed = wanted(name); failed != ncclSuccess) return failed

template <class T>
void add(void* to, const void* from, size_t count, bool first) {
  auto* sum = static_cast<T*>(to);
  const auto* x = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) sum[i] = first ? x[i] : sum[i] + x[i];
}

/// Takes what all ranks have posted.
void take(Collective& c, void* to, size_t count) {
  ncclComm& comm = *c.comm;
  if (c.header.kind == 1) {  // a broadcast
    std::memcpy(to, comm.shared->slots[c.header.root].data, count * c.element);
    return;
  }
  for (uint32_t r = 0; r < comm.ranks; ++r) {
    const char* data = comm.shared->slots[r].data;
    if (c.header.type == ncclFloat32)
      add<float>(to, data, count, r == 0);
    else
      add<double>(to, data, count, r == 0);
  }
}

/// Goes on with a collective: 1 if it is done.
int go_on(void* data) {
  Collective& c = *static_cast<Collective*>(data);
  ncclComm& comm = *c.comm;
  auto all = [&](auto f) {
    for (uint32_t r = 0; r < comm.ranks; ++r)
      if (!f(comm.shared->slots[r])) return false;
    return true;
  };
  Slot& mine = comm.shared->slots[comm.rank];
  if (!comm.aborted && comm.running && comm.running != &c)
    comm.failed = refuse(ncclInvalidUsage, "two collectives of one communicator run at the same time");
  while (c.part < c.parts.size() && !comm.aborted && comm.failed == ncclSuccess) {
    comm.running = &c;
    const Part& p = c.parts[c.part];
    const size_t count = std::min(p.count - c.done, area / c.element), bytes = count * c.element,
                 at = c.done * c.element;
    const auto from = reinterpret_cast<CUdeviceptr>(p.from) + at, to = reinterpret_cast<CUdeviceptr>(p.to) + at;
    if (!c.posted) {
      const uint64_t number = comm.exchanges + 1;
      if (!all([&](const Slot& s) { return s.taken.load() + 1 >= number; })) return 0;
      if (!softcuda_touch(from, bytes, 0)) return 1;
      std::memcpy(mine.data, reinterpret_cast<const void*>(from), bytes);
      mine.header = c.header;
      mine.header.count = p.count;
      mine.posted.store(++comm.exchanges);
      c.posted = true;
    }
    if (!all([&](const Slot& s) { return s.posted.load() >= comm.exchanges; })) return 0;
    if (!all([&](const Slot& s) { return s.header == mine.header; })) {
      comm.failed = refuse(ncclInvalidUsage, "the ranks do not make the same calls");
      break;
    }
    if (!softcuda_touch(to, bytes, 1)) return 1;
    take(c, reinterpret_cast<void*>(to), count);
    mine.taken.store(comm.exchanges);
    c.posted = false;
    c.done += count;
    if (c.done == p.count) c.done = 0, ++c.part;
  }
  c.part = c.done = 0;  // a graph runs it again
  c.posted = false;
  comm.running = nullptr;
  return comm.aborted || comm.failed == ncclSuccess;  // the work of a group that has failed ends when it is aborted
}

ncclResult_t enqueue(CUstream stream, std::unique_ptr<Collective> c) {
  c->header.parts = c->parts.size();
  int captured = 0;
  Collective* raw = c.release();
  CUresult result = softcuda_enqueue(
      stream, go_on, raw, [](void* data) { delete static_cast<Collective*>(data); }, &captured);
  if (result != CUDA_SUCCESS) return refuse(ncclUnhandledCudaError, "the stream takes no work");
  if (captured) raw->header.graph = ++raw->comm->captures, ++raw->comm->in_graphs;
  return ncclSuccess;
}

ncclResult_t collective(uint64_t kind, const void* from, void* to, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, CUstream stream) {
  if (!comms.contains(comm)) return refuse(ncclInvalidArgument, "no such communicator");
  auto c = std::make_unique<Collective>();
  c->comm = comms.at(comm);
  c->header.kind = kind;
  c->header.type = type;
  c->header.root = static_cast<uint64_t>(root);
  static const std::map<ncclDataType_t, size_t> sizes = {{ncclUint8, 1},   {ncclInt32, 4},   {ncclUint32, 4},
                                                         {ncclInt64, 8},   {ncclFloat16, 2}, {ncclBfloat16, 2},
                                                         {ncclFloat32, 4}, {ncclFloat64, 8}};
  auto size = sizes.find(type);
  if (size == sizes.end() || (kind == 0 && type != ncclFloat32 && type != ncclFloat64))
    return refuse(ncclInvalidArgument, "a type that the fake does not sum");
  c->element = size->second;
  c->parts.push_back({from, to, count});
  if (depth == 0) return enqueue(stream, std::move(c));
  if (!grouped.empty() && grouped.back().first == stream && grouped.back().second->comm == c->comm &&
      grouped.back().second->header.kind == kind && grouped.back().second->header.type == c->header.type &&
      grouped.back().second->header.root == c->header.root)
    grouped.back().second->parts.push_back(c->parts[0]);
  else
    grouped.emplace_back(stream, std::move(c));
  return ncclSuccess;
}

}  // namespace

#define EXPORTED __attribute__((visibility("default")))

EXPORTED ncclResult_t ncclGetVersion(int* version) {
  const char* text = std::getenv("SOFTNCCL_VERSION");
  *version = text ? std::atoi(text) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::string name = make_shared_memory();
  std::memset(id->internal, 0, sizeof id->internal);
  name.copy(id->internal, sizeof id->internal - 1);
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  rank_here = rank;
  OR_FAIL("ncclCommInitRank");
  if (ranks < 1 || ranks > static_cast<int>(most_ranks) || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument, "ranks");
  auto made = std::make_shared<ncclComm>();
  made->shared = open_shared_memory(id.internal);
  made->rank = static_cast<uint32_t>(rank);
  made->ranks = static_cast<uint32_t>(ranks);
  ++made->shared->joined;
  while (made->shared->joined < made->ranks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (rank == 0) forget_shared_memory(id.internal);
  // the device works while its host waits for other ranks' hosts
  std::thread([made] {
    for (; !made->aborted && !made->destroyed; std::this_thread::sleep_for(std::chrono::microseconds(200)))
      softcuda_go_on();
  }).detach();
  *comm = made.get();
  comms[made.get()] = made;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  ++comm->shared->leaving;
  while (comm->shared->leaving < comm->ranks) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (comm->in_graphs) {
    refuse(ncclInvalidUsage,
           "a communicator is destroyed before graphs with its work: NCCL would wait for them for ever");
    std::abort();
  }
  comm->destroyed = true;
  comms.erase(comm);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->aborted = true;
  comms.erase(comm);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->failed != ncclSuccess ? comm->failed.load() : wanted("async");
  return ncclSuccess;
}

EXPORTED const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    default: return "another error";
  }
}
EXPORTED const char* ncclGetLastError(ncclComm_t) { return last_error.c_str(); }

EXPORTED ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclGroupEnd() {
  if (--depth > 0) return ncclSuccess;
  for (auto& [stream, c] : std::exchange(grouped, {}))
    if (ncclResult_t failed = enqueue(stream, std::move(c)); failed != ncclSuccess) return failed;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream) {
  OR_FAIL("ncclAllReduce");
  if (op != ncclSum) return refuse(ncclInvalidArgument, "an operation that the fake does not have");
  return collective(0, from, to, count, type, 0, comm, stream);
}
EXPORTED ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                                    ncclComm_t comm, cudaStream_t stream) {
  OR_FAIL("ncclBroadcast");
  return collective(1, from, to, count, type, root, comm, stream);
}
