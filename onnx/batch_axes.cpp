#include "onnx/batch_axes.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace tutti::onnx {
namespace {

/// Whether exporters use the name for the axis of the batch.
bool means_batch(const std::string& symbol) {
  std::string text = symbol;
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static const std::set<std::string> names = {"n", "b", "bs"};
  return names.contains(text) || text.find("batch") != std::string::npos;
}

std::string batch_symbol(const Model& model) {
  for (const Port& p : model.inputs)
    for (const std::string& symbol : p.symbols)
      if (means_batch(symbol)) return symbol;
  for (const Port& p : model.inputs)
    if (!p.symbols.empty() && !p.symbols[0].empty()) return p.symbols[0];
  return "";
}

bool opens(const Port& p) { return !p.has_shape || (!p.shape.empty() && p.shape[0] < 0); }

}  // namespace

bool is_setting(const Port& input) {
  auto dtype = dtype_of(input.type);
  return input.has_shape && input.shape.empty() && dtype && !is_float(*dtype);
}

BatchAxes::BatchAxes(const Model& model) : symbol_(batch_symbol(model)) {
  open_ = std::ranges::any_of(model.inputs, [&](const Port& p) { return opens(p) || named(p).has_value(); });
  for (const Port& p : model.inputs)
    if (!open_ && only_ == 0 && !p.shape.empty()) only_ = std::max<int64_t>(p.shape[0], 0);
  if (std::ranges::any_of(model.inputs, [&](const Port& p) { return !is_setting(p) && !of(p); }))
    only_ = std::max<int64_t>(only_, 1);
}

std::optional<size_t> BatchAxes::named(const Port& port) const {
  auto it = std::ranges::find(port.symbols, symbol_);
  if (symbol_.empty() || it == port.symbols.end()) return std::nullopt;
  return static_cast<size_t>(it - port.symbols.begin());
}

std::optional<size_t> BatchAxes::of(const Port& input) const {
  if (auto axis = named(input)) return axis;
  if (opens(input)) return 0;
  // The only open axis of no name, or of a model that is fixed the first of the batch's size.
  auto matches = [&, wanted = open_ ? -1 : only_](size_t k) {
    return input.shape[k] == wanted && input.symbols[k].empty();
  };
  std::optional<size_t> found;
  for (size_t k = 0; k < input.shape.size(); ++k) {
    if (!matches(k) || (found && !open_)) continue;
    if (found) return std::nullopt;
    found = k;
  }
  return found;
}

}  // namespace tutti::onnx
