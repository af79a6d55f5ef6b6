// Facts about this machine; nothing that identifies its owner.
#pragma once
#include <string>

namespace tutti {

/// The first value of `key` in a file of "key<separator>value" lines, without quotes; "" if there is none.
std::string value_in(const char* file, const std::string& key, char separator);
/// The processor's name; "" if unknown.
std::string cpu_model();
/// Such as "Debian GNU/Linux 12 (bookworm)"; "" if unknown.
std::string system_name();

}  // namespace tutti
