// Warnings from files that include graph/ops/log.h, whose function `log` excludes core/base/log.h.
#pragma once
#include <string>

namespace tutti {

/// log::warning(topic, "{}", text).
void warn(const std::string& topic, const std::string& text);

}  // namespace tutti
