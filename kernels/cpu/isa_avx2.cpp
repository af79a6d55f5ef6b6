#define TUTTI_ISA_NAMESPACE avx2
#define TUTTI_ISA_NAME "avx2"
#include "kernels/cpu/isa_loops.inc"
