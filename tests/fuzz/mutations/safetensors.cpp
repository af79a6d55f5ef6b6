// How libFuzzer mutates safetensors files: where the bytes become more or fewer, the length of the head, the number
// that they begin with, goes along, so that what the head says is reached.
#include <cstdint>
#include <cstring>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  uint64_t head = 0;
  if (size <= sizeof(head) || seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);  // sometimes anything
  std::memcpy(&head, data, sizeof(head));
  size_t rest = size - sizeof(head), now = LLVMFuzzerMutate(data + sizeof(head), rest, most - sizeof(head));
  head += now - rest;
  std::memcpy(data, &head, sizeof(head));
  return now + sizeof(head);
}
