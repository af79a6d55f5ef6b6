// The cross entropy of a linear head in parts: the logits of a language model, and their gradients, are the largest
// tensors of its step, but each row of them is needed only for a moment.
#pragma once
#include "graph/graph.h"

namespace tutti {

/// The rule: logits [rows, classes] of more elements than this are never stored as a whole (1 GiB in f32).
constexpr int64_t most_logits = int64_t{1} << 28;

/// The same step, or evaluation, except that a cross entropy (or log_softmax, or logsumexp) over the classes of logits
/// [rows, classes] with more than `most` elements is computed in parts, if a product makes the logits. All rows of a
/// part run through the head, the loss and their gradients before the next part begins. Sums over rows (the loss, and
/// the gradients of the head's weights) add the parts in their order, in f32 if they have two bytes per element. Parts
/// have as equal numbers of rows as possible and at most `most` logits.
///
/// Logits stay whole if something reads them that mixes rows (such as a state that keeps them), or if the gradient of
/// the loss depends on the loss of other rows.
TUTTI_API Graph loss_in_parts(Graph g, int64_t most = most_logits);

}  // namespace tutti
