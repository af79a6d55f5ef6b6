// std::filesystem::path makes UTF-16 of a std::string by mbrtowc, which knows the code pages of the C runtime alone,
// never UTF-8. This one, which programs get in its place, does: paths are UTF-8 outside, as everywhere.
#include <cerrno>
#include <cstdint>
#include <cwchar>

extern "C" {

/// As in C, from UTF-8, whatever the locale. A character above U+FFFF is two units: the first takes three of its bytes
/// and leaves the second unit in the state.
size_t mbrtowc(wchar_t* to, const char* from, size_t bytes, mbstate_t* state) {
  static mbstate_t own = 0;
  if (!state) state = &own;
  if (!from) {
    *state = 0;
    return 0;
  }
  if (bytes == 0) return static_cast<size_t>(-2);
  if (*state != 0) {
    if (to) *to = static_cast<wchar_t>(*state);
    *state = 0;
    return 1;
  }
  const auto* b = reinterpret_cast<const unsigned char*>(from);
  const size_t length = b[0] < 0x80 ? 1 : b[0] >> 5 == 6 ? 2 : b[0] >> 4 == 14 ? 3 : b[0] >> 3 == 30 ? 4 : 0;
  uint32_t c = length == 1 ? b[0] : b[0] & (0x7fu >> length);
  bool good = length > 0;
  for (size_t k = 1; good && k < length; ++k) {
    if (k == bytes) return static_cast<size_t>(-2);
    good = b[k] >> 6 == 2;
    c = c << 6 | (b[k] & 0x3f);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (!good || c < least[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) {
    errno = EILSEQ;
    return static_cast<size_t>(-1);
  }
  if (c < 0x10000) {
    if (to) *to = static_cast<wchar_t>(c);
    return c == 0 ? 0 : length;
  }
  c -= 0x10000;
  if (to) *to = static_cast<wchar_t>(0xd800 + (c >> 10));
  *state = static_cast<mbstate_t>(0xdc00 + (c & 0x3ff));
  return 3;
}

// The C runtime has these in one object with its mbrtowc: whoever used one of them would get both.

size_t mbrlen(const char* from, size_t bytes, mbstate_t* state) {
  static mbstate_t own = 0;
  return mbrtowc(nullptr, from, bytes, state ? state : &own);
}

size_t mbsrtowcs(wchar_t* to, const char** from, size_t units, mbstate_t* state) {
  static mbstate_t own = 0;
  const char* at = *from;
  for (size_t count = 0;; ++count) {
    if (to && count == units) return *from = at, count;
    const size_t length = mbrtowc(to ? to + count : nullptr, at, 4, state ? state : &own);
    if (length == static_cast<size_t>(-1)) return length;
    if (length == 0) {
      if (to) *from = nullptr;
      return count;
    }
    at += length;
  }
}

/// Names this file, so that the linker takes it from the archive.
void tutti_utf8_paths() {}
}
