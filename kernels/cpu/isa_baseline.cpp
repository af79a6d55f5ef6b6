#define TUTTI_ISA_NAMESPACE baseline
#define TUTTI_ISA_NAME "baseline"
#include "kernels/cpu/isa_loops.inc"
