#include "train/task/notice.h"

#include "core/base/log.h"

namespace tutti {

void notice(const std::string& topic, const std::string& text) { log::warning(topic, "{}", text); }

}  // namespace tutti
