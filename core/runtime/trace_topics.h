// The topics of TUTTI_TRACE.
#pragma once
#include <string>
#include <vector>

namespace tutti {

/// What is wrong with a value of TUTTI_TRACE, and the valid topics: all, dispatch, graph, kernels, and the names of
/// plugins. "" if it is valid.
std::string wrong_topics(const std::string& value, const std::vector<std::string>& plugins);

}  // namespace tutti
