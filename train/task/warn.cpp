#include "train/task/warn.h"

#include "core/base/log.h"

namespace tutti {

void warn(const std::string& topic, const std::string& text) { log::warning(topic, "{}", text); }

}  // namespace tutti
