// What the software CUDA device offers to a fake library that puts work of its own into streams.
#pragma once
#include <cuda.h>
#include <stddef.h>

extern "C" {
/// Puts work into the stream, or into the graph that it is captured for (`captured`: 1). When the device comes to it,
/// `work` is called until it returns 1; 0: it waits for another process. `release` is called at the end.
CUresult softcuda_enqueue(CUstream stream, int (*work)(void* data), void* data, void (*release)(void* data),
                          int* captured);
/// Each stream runs a piece of its work, as a device does while its host is busy elsewhere.
void softcuda_go_on();
/// Of `work`: whether the device has these bytes; else it has failed. `written`: they are written now.
int softcuda_touch(CUdeviceptr at, size_t bytes, int written);
}
