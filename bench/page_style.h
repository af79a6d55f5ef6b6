// How pages look: those of benchmarks and of runs.
#pragma once
#include <string>
#include <string_view>

namespace tutti::bench {

/// Everything up to the body's first element. The page needs no other file, and follows the reader's light or dark
/// theme. `more_style`: CSS rules of that page alone.
std::string page_head(std::string_view title, std::string_view more_style = "");

}  // namespace tutti::bench
