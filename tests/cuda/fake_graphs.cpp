#include "tests/cuda/fake_graphs.h"

#include <cstdio>
#include <exception>
#include <memory>

#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/fake_descriptors.h"

namespace tutti::cuda::fake {
namespace {

GraphState current;

Descriptor& of(cudnnBackendDescriptor_t d) { return *static_cast<Descriptor*>(d); }

size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR: return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_FRACTION:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR: return 8;
    default: return 4;  // enumerations, int32 and float
  }
}

/// What the heuristics give: configurations of the graph.
void give_configurations(const Descriptor& heuristics, int64_t requested, int64_t* count, void* list) {
  auto available = static_cast<int64_t>(current.configurations);
  if (requested == 0 || !list) {
    *count = available;
    return;
  }
  *count = std::min(requested, available);
  for (int64_t k = 0; k < *count; ++k) {
    Descriptor& c = of(static_cast<cudnnBackendDescriptor_t*>(list)[k]);
    c.graph = heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).at(0);
    c.number = k;
    c.finalized = true;
  }
}

template <class T>
cudnnStatus_t give(T value, int64_t requested, int64_t* count, void* list) {
  if (count) *count = 1;
  if (requested > 0 && list) std::memcpy(list, &value, sizeof value);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

GraphState& reset_graphs() { return current = {}; }

}  // namespace tutti::cuda::fake

using namespace tutti::cuda::fake;
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED size_t cudnnGetVersion() { return 91200; }  // the newest without unified attention
EXPORTED const char* cudnnGetErrorString(cudnnStatus_t) { return "a status of the fake cuDNN"; }
EXPORTED void cudnnGetLastErrorString(char* text, size_t size) { std::snprintf(text, size, "the fake cuDNN's reason"); }
EXPORTED cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  current.stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = current.stream;
  return CUDNN_STATUS_SUCCESS;
}

EXPORTED cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* d) {
  *d = new Descriptor{type};
  ++current.descriptors;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete &of(d);
  --current.descriptors;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t type, int64_t count, const void* list) {
  if (of(d).finalized) return CUDNN_STATUS_BAD_PARAM;
  auto begin = static_cast<const unsigned char*>(list);
  Descriptor::Value& value = of(d).values[name] = {{begin, begin + static_cast<size_t>(count) * size_of(type)}, count};
  for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < count; ++k)
    value.descriptors.push_back(
        std::make_shared<Descriptor>(of(static_cast<const cudnnBackendDescriptor_t*>(list)[k])));
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  if (of(d).type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    auto number = static_cast<size_t>(of(d).descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).number);
    if (number < current.refused) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  of(d).finalized = true;
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                                cudnnBackendAttributeType_t, int64_t requested, int64_t* count,
                                                void* list) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: give_configurations(of(d), requested, count, list); break;
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      if (requested > 0 && list) of(*static_cast<cudnnBackendDescriptor_t*>(list)).number = of(d).number;
      break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      *count = 0;
      if (auto note = current.notes.find(of(d).number); note != current.notes.end())
        return give(note->second, requested, count, list);
      break;
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      *count = 0;
      if (auto note = current.behaviors.find(of(d).number); note != current.behaviors.end())
        return give(note->second, requested, count, list);
      break;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return give(of(d).number, requested, count, list);
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED: return give(int32_t{1024}, requested, count, list);
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: return give(current.workspace, requested, count, list);
    default:
      if (count) *count = 0;  // no other notes, no knobs
  }
  return CUDNN_STATUS_SUCCESS;
}
EXPORTED cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                           cudnnBackendDescriptor_t pack) {
  if (current.fails) return CUDNN_STATUS_EXECUTION_FAILED;
  auto uids = of(pack).list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  auto pointers = of(pack).list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (uids.size() != pointers.size()) return CUDNN_STATUS_BAD_PARAM;
  auto graph = of(plan).descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).graph;
  bool loses_nan = current.loses_nan;
  size_t failed = current.failed;
  enqueue(current.stream, [=] {
    try {
      compute(*graph, uids.data(), pointers.data(), uids.size(), loses_nan);
      ++current.executed;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "fake cuDNN: %s\n", e.what());
      ++current.failed;
    }
  });
  return current.failed > failed ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}
