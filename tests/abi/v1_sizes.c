/* The sizes of the structs, as the recorded header of version 1 has them. */
#include "tutti_plugin_v1.h"

const size_t v1_sizes[] = {
    sizeof(TuttiError),   sizeof(TuttiExt),     sizeof(TuttiValue),  sizeof(TuttiNode),        sizeof(TuttiProgram),
    sizeof(TuttiDevice),  sizeof(TuttiMemory),  sizeof(TuttiOptions), sizeof(TuttiHost),       sizeof(TuttiPlugin),
    sizeof(TuttiArray),   sizeof(TuttiSink),    sizeof(TuttiAttr),   sizeof(TuttiInstr),       sizeof(TuttiState),
    sizeof(TuttiGroup),   sizeof(TuttiPair)};
