#include "backends/onednn/pad_channels.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/parallel.h"

namespace tutti::onednn {
namespace {

/// One input: row-major outside, zero-padded inside, reordered if `conv` needs another layout.
struct Side {
  int64_t outer = 1;            ///< number of slices along and before the padded axis
  size_t from = 0, to = 0;      ///< bytes per slice
  KernelPtr reorder;            ///< null: `conv` uses the row-major copy
  size_t copy = 0, wanted = 0;  ///< bytes of the copy and of the reordered copy

  Side(const TensorType& narrow, const TensorType& padded, const Layout& layout, int threads) {
    size_t axis = 0;
    while (axis + 1 < narrow.shape.size() && narrow.shape[axis] == padded.shape[axis]) outer *= narrow.shape[axis++];
    from = num_bytes(narrow) / static_cast<size_t>(outer);
    to = num_bytes(padded) / static_cast<size_t>(outer);
    copy = aligned(num_bytes(padded));
    if (layout == plain_layout(padded)) return;
    reorder = cpu::make_reorder(padded, plain_layout(padded), layout, threads);
    wanted = aligned(cpu::layout_bytes(layout, padded));
  }
};

class Even : public Kernel {
 public:
  Even(const NodeView& c, const std::array<TensorType, 2>& padded, KernelPtr conv)
      : conv_(std::move(conv)), threads_(c.threads) {
    size_t shared = conv_->scratch;
    in = conv_->in;
    out = conv_->out;
    implementation = conv_->implementation;
    for (size_t k = 0; k < padded.size(); ++k) {
      const Side& s = sides_.emplace_back(c.in(k), padded[k], conv_->in[k], threads_);
      in[k] = plain_layout(c.in(k));
      scratch += s.copy + s.wanted;
      if (s.reorder) shared = std::max(shared, s.reorder->scratch);
    }
    scratch += shared;
  }

  void bind(std::span<void* const> from, std::span<void* const> to, std::byte* scratch) override {
    std::vector<void*> inside(from.begin(), from.end());
    for (size_t k = 0; k < sides_.size(); ++k) {
      const Side& s = sides_[k];
      sources_.push_back(static_cast<const std::byte*>(from[k]));
      copies_.push_back(scratch);
      inside[k] = s.reorder ? scratch + s.copy : scratch;
      scratch += s.copy + s.wanted;
    }
    for (size_t k = 0; k < sides_.size(); ++k) {
      void* copy = copies_[k];
      if (sides_[k].reorder) sides_[k].reorder->bind(std::span(&copy, 1), std::span(&inside[k], 1), scratch);
    }
    conv_->bind(inside, to, scratch);
  }

  void run() override {
    for (size_t k = 0; k < sides_.size(); ++k) {
      const Side& s = sides_[k];
      kernels::share(s.outer, s.outer * static_cast<int64_t>(s.to), threads_, [&](int64_t first, int64_t last, int) {
        for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
          std::memcpy(copies_[k] + i * s.to, sources_[k] + i * s.from, s.from);
          std::memset(copies_[k] + i * s.to + s.from, 0, s.to - s.from);
        }
      });
      if (s.reorder) s.reorder->run();
    }
    conv_->run();
  }

 private:
  KernelPtr conv_;
  int threads_;
  std::vector<Side> sides_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> copies_;
};

}  // namespace

KernelPtr make_channel_padded(const NodeView& c, const std::array<TensorType, 2>& padded, KernelPtr conv) {
  return std::make_unique<Even>(c, padded, std::move(conv));
}

}  // namespace tutti::onednn
