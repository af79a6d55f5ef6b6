#define TUTTI_ISA_NAMESPACE avx512_bf16
#define TUTTI_ISA_NAME "avx512_bf16"
#include "kernels/cpu/isa_loops.inc"
