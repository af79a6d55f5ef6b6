// Peak rates of graphics cards that are not here, for predictions (tutti plan --roofline).
#pragma once
#include <map>
#include <string>
#include <vector>

namespace tutti::bench {

/// A card's peak rates as its vendor states them.
struct Card {
  std::string name;                     ///< "h100"
  std::string doc;                      ///< the card, and where the numbers come from
  double bytes_per_second = 0;          ///< of its memory
  std::map<std::string, double> flops;  ///< of dense products, by precision: "f32", "tf32", "bf16", "f16"
  double launch_seconds = 0;  ///< from the end of one kernel to the start of the next, in a graph or command buffer
};

/// All cards with a record.
const std::vector<Card>& cards();
/// A card's name, or "2TB/s,f32=60TFLOP/s,bf16=900TFLOP/s,launch=3us". Throws Error(invalid) for another text.
Card parse_card(const std::string& text);

}  // namespace tutti::bench
