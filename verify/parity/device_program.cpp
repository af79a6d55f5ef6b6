#include "verify/parity/device_program.h"

namespace tutti::parity {

DeviceProgram::DeviceProgram(Session& session, const Graph& g, uint64_t tuning_bytes)
    : session_(session),
      graph_(g),
      legalizer_(session),
      lowered_(compile_for_device(g, legalizer_)),
      executable_(session.compile(lowered_.program(), tuning_bytes)) {
  executable_.prepare();
}

void DeviceProgram::write(const std::string& state, const Tensor& value) {
  std::vector<std::byte> bytes(num_bytes(value.type));
  store_tensor(value, bytes.data());
  session_.write(state, bytes.data(), bytes.size());
}

Tensor DeviceProgram::read(const std::string& state) {
  const TensorType& type = graph_.info(graph_.find_state(state)->after).type;
  std::vector<std::byte> bytes(num_bytes(type));
  session_.read(state, bytes.data(), bytes.size());
  return tensor_from(type, bytes.data());
}

void DeviceProgram::step(const Tensors& feeds) {
  std::vector<void*> slots = executable_.stage();
  for (size_t i = 0; i < slots.size(); ++i) store_tensor(feeds.at(lowered_.feeds()[i]), slots[i]);
  session_.wait(executable_.run());
}

Tensors DeviceProgram::run(const Tensors& inputs, bool write_states) {
  for (const State& s : graph_.states())
    if (write_states && s.before != no_id) write(s.name, inputs.at(s.name));
  step(inputs);
  Tensors out;
  for (const State& s : graph_.states()) out.emplace(s.name, read(s.name));
  return out;
}

}  // namespace tutti::parity
