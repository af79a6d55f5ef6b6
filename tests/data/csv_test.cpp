// Tables in CSV files: how they are cut into fields, what a column holds, and what is said of bad ones.
#include <fmt/format.h>

#include <cmath>

#include "data/dataset.h"
#include "data/loader.h"
#include "tests/data/columns.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

/// The column of both halves, back in the order of the file.
template <class T>
std::vector<T> in_file_order(const Sources& s, const std::string& column) {
  std::vector<T> train = all_of<T>(*s.train, column), test = all_of<T>(*s.test, column);
  train.insert(train.end(), test.begin(), test.end());
  std::vector<int32_t> order = shuffled_order(s.train->size() + s.test->size(), 0, 0);
  size_t width = train.size() / order.size();
  std::vector<T> file(train.size());
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t k = 0; k < width; ++k) file[static_cast<size_t>(order[i]) * width + k] = train[i * width + k];
  return file;
}

struct Files {
  Folder folder;
  Sources open(const std::string& text, const std::string& target = "") {
    put(folder / "t.csv", text);
    return open_data("csv:" + folder / "t.csv" + target);
  }
  std::string error(const std::string& text, const std::string& target = "") {
    return message_of([&] { open(text, target); });
  }
};

TEST(Csv, NumbersTextAndAClass) {
  Files f;
  Sources s = f.open(
      "\xef\xbb\xbf"
      "age,city,height,kind\r\n"
      "1,Zug,0.5,b\r\n"
      "\r\n"
      " 2 ,Bern,1e2,a\r\n"
      "3,\"Zug\",+7,b\r\n"
      "-4,NA,.25,b");
  EXPECT_EQ(s.train->name, "t.csv/train");
  EXPECT_EQ(s.train->size(), 3);
  EXPECT_EQ(s.test->size(), 1);
  EXPECT_EQ(in_file_order<float>(s, "numbers"), (std::vector<float>{1, .5f, 2, 100, 3, 7, -4, .25f}));
  EXPECT_EQ(in_file_order<int32_t>(s, "category.city"), (std::vector<int32_t>{2, 1, 2, 0}));
  EXPECT_EQ(in_file_order<int32_t>(s, "label"), (std::vector<int32_t>{1, 0, 1, 1}));
  EXPECT_EQ(to_string(s.train->column("numbers").type), "f32[2]");
  EXPECT_EQ(s.train->column("category.city").classes, 3);
  EXPECT_EQ(s.test->column("label").classes, 2);
  s.train->check();
  s.test->check();
}

TEST(Csv, AnotherFileGetsTheNumbersOfTheOneThatAModelWasTrainedOn) {
  Files f;
  Sources first = f.open("age,city,kind\n1,Zug,b\n2,Bern,a\n6,Zug,b\n4,Chur,c\n");
  auto again = [&](const std::string& text) {
    put(f.folder / "u.csv", text);
    return open_data("csv:" + f.folder / "u.csv", {.vocabulary = first.train->vocabulary});
  };
  // Columns in another order, one more, fewer categories, something missing.
  Sources other = again("kind,more,city,age\nc,x,Zug,8\nb,y,,\nc,z,Zug,1\n");
  EXPECT_EQ(in_file_order<int32_t>(other, "category.city"), (std::vector<int32_t>{3, 0, 3}));
  EXPECT_EQ(in_file_order<int32_t>(other, "label"), (std::vector<int32_t>{2, 1, 2}));
  EXPECT_EQ(other.test->column("category.city").classes, 4);
  double mean = 0;
  for (float age : all_of<float>(*first.train, "numbers")) mean += age / 3;
  EXPECT_EQ(in_file_order<float>(other, "numbers"), (std::vector<float>{8, static_cast<float>(mean), 1}));
  EXPECT_EQ(other.train->vocabulary, first.train->vocabulary);
  auto error = [&](const std::string& text) { return message_of([&] { again(text); }); };
  expect_parts(error("age,city,kind\n1,Zug,b\n2,Genf,a\n"), {"line 3, column 'city'", "'Genf' is not one of the 3"});
  expect_parts(error("age,city,kind\n1,Zug,b\n2,Zug,d\n"), {"line 3, column 'kind'", "'d' is not one of the 3"});
  expect_parts(error("age,city,kind\n1,Zug,b\nold,Zug,a\n"), {"line 3, column 'age'", "'old', expected a number"});
  expect_parts(error("city,kind\nZug,b\nZug,a\n"), {"no column 'age'", "trained on", "city or kind"});
  expect_parts(message_of([&] { open_data("csv:" + f.folder / "u.csv", {.vocabulary = "{}"}); }), {"damaged"});
  // Numbers as labels, in whatever way they are written.
  first = f.open("a,y\n1,10\n2,9\n3,10\n");
  EXPECT_EQ(in_file_order<int32_t>(first, "label"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(in_file_order<int32_t>(again("a,y\n1,+9\n2,010\n"), "label"), (std::vector<int32_t>{0, 1}));
  expect_parts(f.error("a,y\n1,caf\xe9\n2,x\n"), {"t.csv, byte", "not UTF-8"});
}

TEST(Csv, QuotedFieldsHoldCommasLinesAndQuotes) {
  Files f;
  Sources s = f.open("\"a, \"\"b\"\"\",y\n\"p,q\",1.5\n\"p\nq\" ,2\n \"p,q\",2\n\"\"\"\",3\n");
  EXPECT_EQ(in_file_order<int32_t>(s, "category.a, \"b\""), (std::vector<int32_t>{3, 2, 3, 1}));
  EXPECT_EQ(in_file_order<float>(s, "target"), (std::vector<float>{1.5, 2, 2, 3}));
}

TEST(Csv, TheTargetIsNamedAndTypedByWhatItHolds) {
  Files f;
  std::string text = "a,b,c:d\n10,x,1.5\n2,y,2\n10,x,3\n";
  EXPECT_EQ(in_file_order<int32_t>(f.open(text, ":a"), "label"), (std::vector<int32_t>{1, 0, 1}));  // by number
  EXPECT_EQ(in_file_order<int32_t>(f.open(text, ":b"), "label"), (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(in_file_order<float>(f.open(text, ":c:d"), "target"), (std::vector<float>{1.5, 2, 3}));
  EXPECT_EQ(f.open(text).train->columns().size(), 3u);
  expect_parts(f.error(text, ":e"), {f.folder / "t.csv", "no column 'e'", "a, b or c:d"});
}

TEST(Csv, MissingNumbersAreTheMeanOfTheTrainingRows) {
  Files f;
  std::string text = "x,y\n";
  for (int i = 0; i < 20; ++i) text += (i % 4 == 1 ? "" : std::to_string(i)) + (i % 2 ? ",a\n" : ",b\n");
  Sources s = f.open(text);
  EXPECT_EQ(s.test->size(), 2);
  std::vector<int32_t> order = shuffled_order(20, 0, 0);
  double total = 0, count = 0;
  for (size_t k = 0; k < 18; ++k)
    if (order[k] % 4 != 1) total += order[k], count += 1;
  std::vector<float> x = in_file_order<float>(s, "numbers");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(x[static_cast<size_t>(i)], static_cast<float>(i % 4 == 1 ? total / count : i)) << i;
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  Files f;
  std::string file = f.folder / "t.csv";
  expect_parts(message_of([&] { open_data("csv:" + f.folder / "no.csv" + ":x"); }), {f.folder / "no.csv:", "no such"});
  expect_parts(f.error(""), {file, "is empty", "first line must contain the column names"});
  expect_parts(f.error("\n\r\n"), {file, "is empty"});
  expect_parts(f.error("a,b\n"), {file, "nothing after the header", "2 rows"});
  expect_parts(f.error("a,b\n1,2\n"), {file, "1 row after the header"});
  expect_parts(f.error("1,2.5\n1,2\n"), {file, "line 1", "1, 2.5", "expected column names"});
  expect_parts(f.error("a,b,a\n1,2,3\n"), {file, "line 1", "two columns are named 'a'"});
  expect_parts(f.error("a,b\n1,2\n\n\"x\ny\",2\n1,2,3\n"), {file, "line 6", "3 fields", "2 columns"});
  expect_parts(f.error("a,b\n1,2\n1,\"x\n\n"), {file, "line 3", "field 2", "not closed"});
  expect_parts(f.error("a,b\n1,5\" pipe\n"), {file, "line 2", "field 2 contains a quote"});
  expect_parts(f.error("a,b\n\"x\"y,2\n"), {file, "line 2", "field 1 has text after"});
  expect_parts(f.error(std::string("a,b\n1,\0\n", 8)), {file, "line 2", "zero byte", "UTF-8"});
  expect_parts(f.error("a;b\n1;2\n3;4\n"), {file, "only column is the target 'a;b'", "comma"});
  expect_parts(f.error("a,b\n,x\nNA,y\n"), {file, "column 'a' is empty", "remove"});
  expect_parts(f.error("a,b\n1,x\n2,\n"), {file, "line 3, column 'b'", "target is missing"});
  expect_parts(f.error("a,b\n1,x\n2,x\n"), {file, "'b' is 'x' in every row", "csv:FILE:TARGET"});
  expect_parts(f.error("a,b\n1,2.0\n2,2\n"), {file, "'b' is '2.0' in every row"});
}

TEST(Csv, AFewTextsAmongNumbersAreAnErrorAndManyMakeText) {
  Files f;
  std::string nine = "a,b\n", half = nine, ids = nine;
  for (int i = 0; i < 10; ++i) {
    nine += (i == 6 ? "six" : std::to_string(i)) + (i % 2 ? ",x\n" : ",y\n");
    half += (i % 2 ? "six" : std::to_string(i)) + (i % 2 ? ",x\n" : ",y\n");
  }
  expect_parts(f.error(nine), {"line 8, column 'a'", "'six'", "9 other rows", "empty for a missing value"});
  EXPECT_EQ(f.open(half).train->column("category.a").classes, 7);
  expect_parts(f.error("a,b\n1,x\n1e99,y\n" +
                       [] {
                         std::string more;
                         for (int i = 0; i < 20; ++i) more += "1,x\n";
                         return more;
                       }()),
               {"line 3, column 'a'", "'1e99'"});
  for (int i = 0; i < 30; ++i) ids += "1," + std::to_string(i) + "\n";
  expect_parts(f.error(ids), {"'b' has 30 values in 30 rows", "3.0"});
  EXPECT_EQ(f.open(ids + "1,30.0\n").train->column("target").type.dtype, DType::f32);
}

/// A column x with those fields, each twice over, and a target.
std::string column(const std::vector<std::string>& fields) {
  std::string text = "x,y\n";
  for (int k = 0; k < 2; ++k)
    for (const std::string& f : fields) text += "\"" + f + "\"," + (k ? "a\n" : "b\n");
  return text;
}

TEST(Csv, NumbersThatAreNotWrittenAsSuchAreNamed) {
  Files f;
  for (const char* odd :
       {"1,5",     "$12",        "12%",       "1,234",  "1,234.50", "1.234,50", "1.234.567", "1'234", "1’234",
        "1 234",   "1\u00a0234", "12,34,567", "€ 3",    "3 €",      "CHF 12",   "-$3",       "$-3",   "(3.50)",
        "\u22125", "1e400",      "inf",       "12 USD", "1_000",    "+4,5",     "12-",       "5 %"}) {
    expect_parts(f.error(column({odd, odd, "7"})), {f.folder / "t.csv", "line 2, column 'x'",
                                                    fmt::format("'{}' is not a valid number", odd), "1234.5", "empty"});
    expect_parts(f.error(column({"7", "free", odd, odd})),
                 {"line 4, column 'x'", fmt::format("'{}'", odd), "6 of 8 fields"});
  }
  for (const char* mark : {"-", "--", "None", "n/a", "#N/A", "<NA>", "na", "nil", "\u2013"})
    expect_parts(f.error(column({"7", mark, mark})),
                 {"line 3, column 'x'", fmt::format("'{}'", mark), "2 of 6 fields", "empty"});
  expect_parts(f.error("x,y\n1,\"1,5\"\n2,\"2,5\"\n3,\"1,5\"\n"), {"line 2, column 'y'", "'1,5'"});
  EXPECT_EQ(f.open(column({"7", "?", "NA", ""})).train->column("numbers").type.dtype, DType::f32);
}

TEST(Csv, TextsWithDigitsStayTexts) {
  Files f;
  for (const char* text : {"2024-01-02", "12:30", "1.2.3",       "192.168.0.1", "A4", "3 kg",      "1/2", "5-10",
                           "0x1F",       "1,2,3", "100 Main St", "12a",         "$",  "%",         "(",   "()",
                           "1e",         ",",     "1,,234",      "no",          "..", "1.23.456,", "e5"})
    EXPECT_EQ(f.open(column({text, "some", "other"})).train->column("category.x").classes, 4) << text;
  // Marks among texts, and a few odd numbers among many texts.
  EXPECT_EQ(f.open(column({"None", "None", "brick", "stone"})).train->column("category.x").classes, 4);
  EXPECT_EQ(f.open(column({"$12", "free", "asked for", "none"})).train->column("category.x").classes, 5);
}

}  // namespace
}  // namespace tutti::data
