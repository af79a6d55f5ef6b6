// Child processes: what they get, what they answer, how they end.
#include "core/os/process.h"

#include <gtest/gtest.h>

#include <system_error>

#include "core/os/environment.h"
#include "core/os/library.h"
#include "core/os/this_process.h"

namespace tutti::os {
namespace {

std::string child_program() {
  return (executable().parent_path() / (std::string("os_child") + program_suffix)).string();
}

Program child(std::vector<std::string> words, int out = nothing) {
  words.insert(words.begin(), "child");
  return {.file = child_program(), .words = std::move(words), .environment = {}, .out = out};
}

/// What a child writes, line by line, and how it ends.
std::vector<std::string> lines_of(Program program, Ending& ending) {
  Pipe out;
  program.out = out.ends[1];
  ChildProcess process(program);
  out.close_end(1);
  std::vector<std::string> lines;
  LineReader reader;
  for (std::string line; reader.next(out.ends[0], line, deadline_in(60)) == LineReader::line;) lines.push_back(line);
  ending = process.wait();
  return lines;
}

TEST(Process, GetsItsArgumentsAsTheyAre) {
  const std::vector<std::string> said = {"a b", "\"quoted\"", "back\\", "back\\\\\" slash", "Größe 模型", "",
                                         "*",   "%PATH%",     "$HOME"};
  std::vector<std::string> words = said;
  words.insert(words.begin(), "say");
  for (bool with_us : {false, true}) {
    Program program = child(words);
    program.ends_with_us = with_us;
    Ending ending;
    EXPECT_EQ(lines_of(program, ending), said);
    EXPECT_EQ(ending.exit_code, 0);
  }
}

TEST(Process, GetsVariables) {
  Program program = child({"variable", "A_VARIABLE_OF_THE_TEST"});
  program.environment = environment_with({{"A_VARIABLE_OF_THE_TEST", "one"}});
  Ending ending;
  EXPECT_EQ(lines_of(program, ending), std::vector<std::string>{"one"});
  set_variable("A_VARIABLE_OF_THE_TEST", "two");
  set_variable("A_VARIABLE_OF_THE_TEST", "three", false);
  EXPECT_EQ(lines_of(child({"variable", "A_VARIABLE_OF_THE_TEST"}), ending), std::vector<std::string>{"two"});
  unset_variable("A_VARIABLE_OF_THE_TEST");
  EXPECT_EQ(std::getenv("A_VARIABLE_OF_THE_TEST"), nullptr);
}

TEST(Process, TellsHowItEnded) {
  Ending ending = ChildProcess(child({"exit", "7"})).wait();
  EXPECT_EQ(ending.exit_code, 7);
  EXPECT_EQ(ending.text(), "exit code 7");
  ending = ChildProcess(child({"crash"})).wait();
  EXPECT_EQ(ending.exit_code, -1);
  EXPECT_NE(ending.signal, 0);
#ifdef _WIN32
  EXPECT_EQ(ending.text(), "exception 0xc0000005: access violation");
#else
  EXPECT_EQ(ending.text(), "signal 11 (SIGSEGV: Segmentation fault)");
#endif
}

TEST(Process, AMissingProgramIsAnError) {
  Program program = child({"exit", "0"});
  program.file = "no-such-program-of-tutti";
  program.ends_with_us = false;
  try {
    ChildProcess process(program);
    FAIL();
  } catch (const std::system_error& e) {
    EXPECT_NE(std::string(e.what()).find(program.file), std::string::npos) << e.what();
  }
}

TEST(Process, CanBeWaitedForUntilADeadline) {
  ChildProcess process(child({"sleep"}));
  EXPECT_FALSE(process.ends_by(deadline_in(0.05)));
  process.kill();
  EXPECT_TRUE(process.ends_by(deadline_in(30)));
  EXPECT_EQ(process.wait().exit_code, -1);
}

TEST(Process, IsKilledWithWhatItStarted) {
  Pipe out;
  Program program = child({"family"}, out.ends[1]);
  program.group = true;
  ChildProcess process(program);
  out.close_end(1);
  LineReader reader;
  std::string line;
  ASSERT_EQ(reader.next(out.ends[0], line, deadline_in(60)), LineReader::line);
  EXPECT_EQ(line, "born");
  EXPECT_EQ(reader.next(out.ends[0], line, deadline_in(0.05)), LineReader::silent);
  process.kill();
  EXPECT_EQ(reader.next(out.ends[0], line, deadline_in(30)), LineReader::closed) << "the grandchild still lives";
}

TEST(Process, AnswersApartFromItsOutput) {
  Ending ending;
  EXPECT_EQ(lines_of(child({"answer"}), ending), std::vector<std::string>{"message"});
  EXPECT_EQ(ending.exit_code, 0);
}

TEST(Process, IsTalkedTo) {
  Conversation talk;
  Program program = child({"echo"}, talk.child_out());
  program.in = talk.child_in();
  ChildProcess process(program);
  talk.close_child_ends();
  LineReader reader;
  std::string line;
  for (const char* word : {"hello", "again"}) {
    ASSERT_TRUE(talk.send(std::string(word) + "\n"));
    ASSERT_EQ(reader.next(talk.from(), line, deadline_in(60)), LineReader::line);
    EXPECT_EQ(line.substr(0, line.find('\r')), std::string("you said ") + word);
  }
  process.kill();
  process.wait();
  EXPECT_EQ(reader.next(talk.from(), line, deadline_in(30)), LineReader::closed);
  // An error, not a signal; the system may take the first bytes.
  for (int k = 0; k < 100 && talk.send(std::string(100000, 'x')); ++k) EXPECT_LT(k, 99);
}

TEST(Process, OneOfManyPipesIsReady) {
  Pipe quiet, loud;
  ChildProcess process(child({"say", "x"}, loud.ends[1]));
  loud.close_end(1);
  EXPECT_EQ(wait_readable({quiet.ends[0], -1, loud.ends[0]}, deadline_in(60)), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(wait_readable({quiet.ends[0]}, deadline_in(0.02)), std::vector<bool>{false});
}

}  // namespace
}  // namespace tutti::os
