// Written by scripts/collect.py from graph/ops/lstm_recurrence.cpp: change that file.
#pragma once
#include "graph/op.h"

namespace tutti {

extern TUTTI_API const OpDef lstm_recurrence_op;
extern TUTTI_API const OpDef lstm_recurrence_grad_op;

}  // namespace tutti
