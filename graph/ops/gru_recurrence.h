// Written by scripts/collect.py from graph/ops/gru_recurrence.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef gru_recurrence_op;
extern TUTTI_API const OpDef gru_recurrence_grad_op;

}  // namespace tutti
