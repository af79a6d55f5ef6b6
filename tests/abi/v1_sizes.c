/* The sizes of the structs that grow, as the recorded header of version 1 has them. */
#include "tutti_plugin_v1.h"

const size_t v1_sizes[] = {sizeof(TuttiError),  sizeof(TuttiExt),    sizeof(TuttiValue),   sizeof(TuttiNode), sizeof(TuttiProgram),
                           sizeof(TuttiDevice), sizeof(TuttiMemory), sizeof(TuttiOptions), sizeof(TuttiHost), sizeof(TuttiPlugin)};
