// Notices to users from files that include graph/ops/log.h, whose function `log` excludes core/base/log.h.
#pragma once
#include <string>

namespace tutti {

/// One line on stderr, as log::warning writes it.
void notice(const std::string& topic, const std::string& text);

}  // namespace tutti
