// Style of the HTML pages of benchmarks and runs.
#pragma once
#include <string>
#include <string_view>

namespace tutti::bench {

/// Everything up to the body's first element. The page is self-contained and follows the light or dark theme of the
/// browser. `more_style`: additional CSS rules.
std::string page_head(std::string_view title, std::string_view more_style = "");

}  // namespace tutti::bench
