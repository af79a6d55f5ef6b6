// Layouts that oneDNN chose: its memory descriptors.
#pragma once
#include <dnnl.hpp>

#include "backends/cpu/kernel.h"
#include "core/base/shape.h"

namespace tutti::onednn {

using cpu::aligned;
using cpu::Choice;
using cpu::ChoiceCache;
using cpu::Entry;
using cpu::FunctionKernel;
using cpu::Kernel;
using cpu::KernelPtr;
using cpu::Layout;
using cpu::MatchResult;
using cpu::NodeView;

using Desc = dnnl::memory::desc;

/// oneDNN's type for the storage of t (u32 as s32, bool as u8); undef if there is none.
dnnl::memory::data_type data_type(DType t);
/// Row-major descriptor with these dimensions; scalars have one dimension of size 1.
Desc plain_desc(dnnl::memory::data_type t, const Shape& shape);
/// The row-major layout of a value, described where oneDNN can: supported dtype and at most 12 dimensions.
Layout plain_layout(const TensorType& t);
/// The layout of a descriptor: plain if its strides are row-major and its dtype is the value's.
Layout layout_of(const Desc& desc, const TensorType& t);
/// The descriptor of a layout made by these functions; empty for others.
Desc desc_of(const Layout& f);

}  // namespace tutti::onednn
