#include "nn/image_transform.h"

#include "graph/ops/cast.h"
#include "graph/ops/mul.h"

namespace tutti::nn {

Value ImageTransform::operator()(Value column) {
  const bool bytes = column.dtype() == DType::u8;
  if (bytes) column = cast(column, DType::f32) * (1.0 / 255);
  if (column.rank() != 4) return column;
  if (!pixels_) pixels_ = column;
  if (normalise_) {
    if (bytes) normalise_->check_bytes();
    column = (*normalise_)(column);
    normalised_ = true;
  }
  if (mixup_) {
    column = mixup_->sum(column, mixup_->partner(column));
    mixed_ = true;
  }
  return column;
}

}  // namespace tutti::nn
