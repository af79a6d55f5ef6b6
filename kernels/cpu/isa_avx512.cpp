#define TUTTI_ISA_NAMESPACE avx512
#define TUTTI_ISA_NAME "avx512"
#include "kernels/cpu/isa_loops.inc"
