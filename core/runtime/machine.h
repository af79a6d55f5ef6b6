// What the system says about this machine; nothing that names its owner.
#pragma once
#include <string>

namespace tutti {

/// The first value of `key` in a file of "key<separator>value" lines, without quotes; "" where there is none.
std::string value_in(const char* file, const std::string& key, char separator);
/// The processor's name; "" where the system does not say.
std::string cpu_model();
/// "Debian GNU/Linux 12 (bookworm)"; "" where the system does not say.
std::string system_name();

}  // namespace tutti
