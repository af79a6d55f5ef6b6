// Pictures in PNG and JPEG.
#include "data/files/image_file.h"

#include <vector>

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::ImageForm form = tutti::image_form(file.path());
    if (form.height * form.width > 1 << 22) return 0;  // soundly large: would only cost time
    form.channels = 3;
    std::vector<std::byte> pixels(static_cast<size_t>(form.channels * form.height * form.width));
    tutti::read_image(file.path(), form, pixels.data());
  } catch (const tutti::Error&) {
  }
  return 0;
}
