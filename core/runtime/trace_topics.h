// The topics of TUTTI_TRACE.
#pragma once
#include <string>
#include <vector>

namespace tutti {

/// What is wrong with a value of TUTTI_TRACE, and which topics are valid: all, dispatch, graph, kernels, and the names
/// of plugins, each of which may log under its own. "" when nothing is.
std::string wrong_topics(const std::string& value, const std::vector<std::string>& plugins);

}  // namespace tutti
