#include "world.h"

#include "core/world/agree.h"
#include "core/world/launch.h"
#include "module.h"

namespace tutti::python {
namespace {

/// Never destroyed: MPI ends by leave().
struct Joined {
  std::shared_ptr<World> world;
  WorldOptions options;
};
Joined& joined() {
  static auto& all = *new Joined;
  return all;
}

World& ranks() {
  std::shared_ptr<World> world = world_of_ranks();
  if (!world) throw invalid("there are no other ranks");
  return *world;
}

/// Rank, number of ranks. `timeout`: 0 for the usual one.
std::pair<int, int> join(double timeout) {
  if (timeout < 0) throw invalid("timeout: must be more than 0", "seconds, such as 60");
  if (timeout > 0 && joined().world && joined().options.timeout != timeout)
    throw invalid("timeout: the ranks have met already", "call tutti.world(timeout=…) before the first trainer");
  if (timeout > 0) joined().options.timeout = timeout;
  std::shared_ptr<World> world = world_of_ranks();
  return world ? std::pair(world->rank(), world->size()) : std::pair(0, 1);
}

nb::object broadcast(const Array& array) {
  HostView v = view(array);
  HostTensor t = host_tensor_from(v.type, v.data, v.bytes);
  {
    nb::gil_scoped_release release;
    ranks().broadcast(t.bytes);
  }
  return to_numpy(std::move(t));
}

/// Behind everything that a rank does.
void leave() {
  if (std::shared_ptr<World> world = joined().world) world->close();
}

/// After an exception that nobody caught: returns on the rank that is to print it.
void failed(const std::string& text) {
  std::shared_ptr<World> world = joined().world;
  if (world && world->speaker() != world->rank()) world->hand_over(Error(Code::internal, text), 1);
}

void abort_ranks() {
  if (joined().world) joined().world->abort(1);
}

}  // namespace

std::shared_ptr<World> world_of_ranks() {
  Joined& me = joined();
  const Launch launch = this_launch();
  expect_connected(launch);
  if (launch.ranks < 2 || me.world) return me.world;
  me.world = std::make_shared<World>(me.options);
  share_cpus(*me.world);
  nb::gil_scoped_acquire gil;
  nb::module_::import_("tutti.ranks").attr("met")();
  return me.world;
}

void bind_world(nb::module_& m) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  m.def("join_world", &join, nb::arg("timeout"), release());
  m.def(
      "agree",
      [](const std::map<std::string, std::string>& mine) {
        agree(ranks(), {mine.begin(), mine.end()});
      },
      nb::arg("mine"), release());
  m.def("broadcast", &broadcast, nb::arg("array"));
  m.def("leave_world", &leave, release());
  m.def("hand_over", &failed, nb::arg("text"), release());
  m.def("abort_world", &abort_ranks, release());
}

}  // namespace tutti::python
