#include "core/base/text.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Text, SplitLeavesOutWhatIsEmpty) {
  EXPECT_EQ(split(",a,,b c,", ','), (std::vector<std::string>{"a", "b c"}));
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_TRUE(split(",,", ',').empty());
  EXPECT_EQ(fields(",a,b c,", ','), (std::vector<std::string>{"", "a", "b c", ""}));
  EXPECT_EQ(fields("", ','), std::vector<std::string>{""});
}

TEST(Text, ListsAreCutAfterTwenty) {
  EXPECT_EQ(first_of({}, "; "), "");
  EXPECT_EQ(first_of({"a", "b"}, "; "), "a; b");
  std::string twenty = first_of(std::vector<std::string>(20, "a"), ", ");
  EXPECT_EQ(twenty.size(), 20 + 19 * 2u);
  EXPECT_EQ(first_of(std::vector<std::string>(23, "a"), ", "), twenty + ", and 3 more");
}

TEST(Text, BytesHaveTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(65955430), "62.9 MiB");
  EXPECT_EQ(bytes_text(uint64_t{1} << 30), "1.0 GiB");
  EXPECT_EQ(bytes_text(uint64_t{4096} << 30), "4096.0 GiB");
}

TEST(Text, XmlHasNoMarkupOfOthers) {
  EXPECT_EQ(escape_xml("<a href=\"x\">R&D</a>"), "&lt;a href=&quot;x&quot;&gt;R&amp;D&lt;/a&gt;");
  EXPECT_EQ(escape_xml("one\n\ttwo\x01\x1b[0m"), "one&#10;&#9;two??[0m");
  EXPECT_EQ(escape_xml("größer ≥"), "größer ≥");
}

}  // namespace
}  // namespace tutti
