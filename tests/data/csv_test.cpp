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
  Sources unknown = again("age,city,kind\n1,Zug,b\n2,Genf,a\n");
  EXPECT_EQ(in_file_order<int32_t>(unknown, "category.city"), (std::vector<int32_t>{3, 0}));
  ASSERT_EQ(unknown.train->notes.size(), 1u);
  expect_parts(unknown.train->notes[0], {"line 3, column 'city'", "'Genf' is not one of the 3", "missing (1 in"});
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
  EXPECT_EQ(f.open(text).train->columns().size(), 4u);
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
  expect_parts(f.error("a\n1\n3\n"), {file, "only column is the target 'a'", "separator"});
  expect_parts(f.error("5.1,3.5,setosa\n4.9,3,setosa\n"), {"line 1", "expected column names", "no-header"});
  expect_parts(f.error("a,b\n,x\nNA,y\n"), {file, "column 'a' is empty", "remove"});
  expect_parts(f.error("a,b\n1,x\n2,\n"), {file, "1 row after the header with a target"});
  expect_parts(f.error("a,b\n1,x\n2,x\n"), {file, "'b' is 'x' in every row", "csv:FILE:TARGET"});
  expect_parts(f.error("a,b\n1,2.0\n2,2\n"), {file, "'b' is '2' in every row"});
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
  Sources real = f.open(ids);
  EXPECT_EQ(real.train->column("target").type.dtype, DType::f32);
  expect_parts(real.train->notes.at(0), {"'b' has 30 different whole numbers", "csv:FILE:b:class"});
  EXPECT_EQ(f.open(ids, ":b:class").train->column("label").classes, 30);
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

std::vector<std::string> notes_of(const Sources& s) { return s.train->notes; }

TEST(Csv, AnIndexIsLeftOutAndSaid) {
  Files f;
  std::string rows = "0,1.5,a\n1,2.5,b\n2,4.5,a\n";
  Sources s = f.open(",x,y\n" + rows);
  EXPECT_EQ(in_file_order<float>(s, "numbers"), (std::vector<float>{1.5, 2.5, 4.5}));
  expect_parts(notes_of(s).at(0), {"first column", "left out"});
  EXPECT_EQ(f.open(",x,y\n1,1,a\n2,2,b\n3,1,a\n").train->column("numbers").type.shape, Shape{1});
  // With a name, or with equal numbers, it is a column.
  EXPECT_EQ(f.open("id,x,y\n" + rows).train->column("numbers").type.shape, Shape{2});
  EXPECT_EQ(f.open(",x,y\n5,1.5,a\n5,2.5,b\n").train->column("numbers").type.shape, Shape{2});
}

TEST(Csv, RowsWithoutATargetAreLeftOutAndCounted) {
  Files f;
  Sources s = f.open("x,y\n1,a\n2,\n3,b\n4,NA\n5,a\n");
  EXPECT_EQ(in_file_order<float>(s, "numbers"), (std::vector<float>{1, 3, 5}));
  EXPECT_EQ(notes_of(s), (std::vector<std::string>{"2 of 5 rows have no target 'y': they are left out"}));
}

TEST(Csv, DatesAreDays) {
  Files f;
  Sources s = f.open("when,y\n1970-01-02,a\n1969-12-31,b\n2024-03-01T12:00:00Z,a\n2024/03/01 06:00,b\n");
  EXPECT_EQ(in_file_order<float>(s, "numbers"), (std::vector<float>{1, -1, 19783.5, 19783.25}));
  expect_parts(notes_of(s).at(0), {"'when'", "days since 1970-01-01"});
  expect_parts(f.error("when,y\n1.2.2024,a\n3.2.2024,b\n"), {"line 2, column 'when'", "2024-12-31", "drop when"});
  expect_parts(f.error("when,y\n2024-02-30,a\n2024-02-01,b\n2024-03-01,b\n"), {"line 2, column 'when'", "ISO 8601"});
}

TEST(Csv, OtherFormsOfFiles) {
  Files f;
  std::vector<float> want = {1.5, 2, 3};
  auto numbers = [&](const std::string& text, const std::string& csv = "") {
    put(f.folder / "o.csv", text);
    return in_file_order<float>(open_data("csv:" + f.folder / "o.csv", {.csv = csv}), "numbers");
  };
  EXPECT_EQ(numbers("x;y\n1.5;a,b\n2;\"b;c\"\n3;a,b\n"), want);
  EXPECT_EQ(numbers("x\ty\n1.5\ta\n2\tb\n3\ta\n"), want);
  EXPECT_EQ(numbers("1.5,a\n2,\"b\"\"c\"\n3,a\n", "no-header"), want);
  EXPECT_EQ(numbers("# made today\nx y\n1.5 a\n# more\n2 b\n3 a\n", "comment:#,separator:space"), want);
  EXPECT_EQ(numbers("x,y\n1.5,caf\xe9\n2,b\n3,b\n", "latin-1"), want);
  EXPECT_EQ(open_data("csv:" + f.folder / "o.csv", {.csv = "latin-1"}).train->vocabulary.find("caf\xc3\xa9") !=
                std::string::npos,
            true);
  expect_parts(message_of([&] { numbers("x,y\n1.5,caf\xe9\n2,b\n"); }), {"not UTF-8", "csv latin-1"});
  expect_parts(message_of([&] { numbers("# by me\nx,y\n1,a\n2,b\n"); }), {"line 2", "csv comment:#"});
  expect_parts(message_of([&] { numbers("x,y\n", "semicolon"); }), {"csv semicolon", "unknown 'semicolon'"});
  // Two members made by gzip: "x,y\n1.5,a\n" and "2,b\n3,a\n".
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xd0\xa9\xe4\x32\xd4\x33\xd5\x49\xe4\x02\x00\xda\x48"
      "\xf8\xae\x0a\x00\x00\x00\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\xd2\x49\xe2\x32\xd6\x49\xe4"
      "\x02\x00\x42\x35\xa1\xea\x08\x00\x00\x00",
      58);
  EXPECT_EQ(numbers(packed), want);
  expect_parts(message_of([&] { numbers(packed.substr(0, packed.size() - 9)); }),
               {"o.csv", "gzip stream ends too early"});
}

TEST(Csv, ColumnsAreChosenAndDropped) {
  Files f;
  put(f.folder / "t.csv", "a,b,c,y\n1,2,3,p\n4,5,6,q\n7,8,9,p\n");
  auto numbers = [&](const OpenOptions& o) {
    return in_file_order<float>(open_data("csv:" + f.folder / "t.csv", o), "numbers");
  };
  EXPECT_EQ(numbers({.columns = "c,a"}), (std::vector<float>{1, 3, 4, 6, 7, 9}));
  EXPECT_EQ(numbers({.drop = "c,a"}), (std::vector<float>{2, 5, 8}));
  auto error = [&](const OpenOptions& o) { return message_of([&] { numbers(o); }); };
  expect_parts(error({.columns = "d"}), {"no column 'd'", "a, b, c or y"});
  expect_parts(error({.drop = "y"}), {"'y' is the target"});
  expect_parts(error({.columns = "a", .drop = "b"}), {"columns a", "drop b", "omit one"});
  expect_parts(error({.drop = "a,b,c"}), {"no column to learn from"});
  std::string known = open_data("csv:" + f.folder / "t.csv").train->vocabulary;
  expect_parts(error({.vocabulary = known, .drop = "a"}), {"drop a", "trained on other columns"});
  expect_parts(message_of([&] { open_data("synthetic:8:2", {.drop = "a"}); }), {"drop", "no effect", "csv"});
}

TEST(Csv, NamesOfRowsAreLeftOut) {
  Files f;
  std::string text = "name,x,y\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("person {},{},{}\n", i, i, i % 2 ? "a" : "b");
  Sources s = f.open(text);
  EXPECT_EQ(s.train->columns().size(), 3u);  // numbers, input, label
  expect_parts(notes_of(s).at(0), {"'name' has 30 different texts in 30 rows", "left out", "columns"});
  EXPECT_EQ(open_data("csv:" + f.folder / "t.csv", {.columns = "name"}).train->column("category.name").classes, 31);
}

TEST(Csv, NewRowsKeepTheirOrderAndNeedNoTarget) {
  Files f;
  Sources first = f.open("x,c,y\n1,p,a\n2,q,b\n6,p,b\n");
  const std::string known = first.train->vocabulary, file = f.folder / "new.csv";
  put(file, "c,x\nq,5\n");
  Sources s = open_data("csv:" + file, {.vocabulary = known, .whole = true, .labelled = false});
  EXPECT_EQ(s.train, s.test);
  EXPECT_EQ(all_of<float>(*s.test, "numbers"), std::vector<float>{5});
  EXPECT_EQ(all_of<int32_t>(*s.test, "category.c"), std::vector<int32_t>{2});
  EXPECT_EQ(classes_in(s.test->vocabulary), (std::vector<std::string>{"a", "b"}));
  expect_parts(message_of([&] { open_data("csv:" + file, {.vocabulary = known, .whole = true}); }), {"no column 'y'"});
  put(file, "x,c,y\n1,p,b\n2,q,?\n3,q,other\n4,p,a\n");
  s = open_data("csv:" + file, {.vocabulary = known, .whole = true, .labelled = false});
  EXPECT_EQ(all_of<float>(*s.test, "numbers"), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(all_of<int32_t>(*s.test, "label"), (std::vector<int32_t>{1, 0, 0, 0}));
}

TEST(Csv, OneInputWithItsStatistics) {
  Files f;
  std::string text = "x,c,y\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{},{},{}.5\n", i, i % 3 ? "p" : "q", 10 * i);
  Sources s = f.open(text);
  Column input = s.train->column("input"), target = s.train->column("target");
  EXPECT_EQ(input.type.shape, Shape{3});
  std::vector<float> rows = in_file_order<float>(s, "input");
  EXPECT_EQ((std::vector<float>{rows.begin(), rows.begin() + 6}), (std::vector<float>{0, 0, 1, 1, 1, 0}));
  double mean = 0, square = 0;
  std::vector<float> y = all_of<float>(*s.train, "target");
  for (float v : y) mean += v / static_cast<double>(y.size());
  for (float v : y) square += (v - mean) * (v - mean) / static_cast<double>(y.size());
  ASSERT_EQ(target.mean.size(), 1u);
  EXPECT_NEAR(target.mean[0], mean, 1e-9);
  EXPECT_NEAR(target.deviation[0], std::sqrt(square), 1e-9);
  EXPECT_EQ(s.test->column("target").mean, target.mean);
  EXPECT_EQ(input.mean.size(), 3u);
  EXPECT_EQ((std::vector<double>{input.mean[1], input.deviation[1]}), (std::vector<double>{0, 1}));
  EXPECT_TRUE(open_data("csv:" + f.folder / "t.csv", {.scaled = false}).train->column("target").mean.empty());
  // The encoding of an older version has no statistics.
  std::string old = R"({"numbers":[["x",9.5]],"categories":[],"target":"y","labels":[],"numeric":true})";
  Column before = open_data("csv:" + f.folder / "t.csv", {.vocabulary = old}).train->column("target");
  EXPECT_TRUE(before.mean.empty());
}

TEST(Csv, TestSetsByFileAndByFraction) {
  Files f;
  std::string text = "x,y\n";
  for (int i = 0; i < 50; ++i) text += fmt::format("{},{}\n", i, i % 2 ? "a" : "b");
  put(f.folder / "t.csv", text);
  put(f.folder / "test.csv", "y,x\nb,7\na,8\n");
  const std::string spec = "csv:" + f.folder / "t.csv", test = "csv:" + f.folder / "test.csv";
  EXPECT_EQ(open_data(spec, {.test_fraction = 0.3}).test->size(), 15);
  Sources s = open_data(spec, {.test_data = test});
  EXPECT_EQ(s.train->size(), 50);
  EXPECT_EQ(all_of<float>(*s.test, "numbers"), (std::vector<float>{7, 8}));
  EXPECT_EQ(all_of<int32_t>(*s.test, "label"), (std::vector<int32_t>{1, 0}));
  auto error = [&](const OpenOptions& o) { return message_of([&] { open_data(spec, o); }); };
  expect_parts(error({.test_fraction = 1}), {"test-fraction 1", "below 1"});
  expect_parts(error({.test_data = test, .test_fraction = 0.1}), {"test-fraction", "test-data"});
  expect_parts(error({.test_data = "synthetic:8:2:16:4"}), {"test-data", "input f32[8]", "numbers f32[1]"});
}

}  // namespace
}  // namespace tutti::data
