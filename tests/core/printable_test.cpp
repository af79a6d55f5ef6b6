#include "core/base/printable.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Printable, LeavesTextAlone) {
  for (const char* text : {"", "a b", "two\nlines\n", "\tä € 𝄞", "C:\\x"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, SpellsControlCodesOut) {
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // the one-character form of ESC [
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "abc"),
            "\\xe2\\x80\\xae"
            "abc");  // text from right to left
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf\xe0\x80\xaf"), "\\xc0\\xaf\\xe0\\x80\\xaf");
}

TEST(Printable, CutsLongLines) {
  std::string cut = printable("name '" + std::string(1000000, 'x') + "' is unknown\nshort\n", 100);
  EXPECT_LT(cut.size(), 200u);
  EXPECT_TRUE(cut.starts_with("name 'xxx"));
  EXPECT_TRUE(cut.ends_with("' is unknown\nshort\n")) << cut;
  EXPECT_NE(cut.find("bytes left out"), std::string::npos);
  std::string umlauts;
  for (int i = 0; i < 1000; ++i) umlauts += "ü";
  EXPECT_EQ(printable(umlauts, 101).find("\\x"), std::string::npos);
  EXPECT_EQ(printable(printable(umlauts, 101)), printable(umlauts, 101));  // no character was cut in two
}

}  // namespace
}  // namespace tutti
