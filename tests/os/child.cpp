// A child process for process_test.cpp: does what its first argument says.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "core/os/process.h"
#include "core/os/this_process.h"

using namespace tutti;

namespace {

void sleep_long() { std::this_thread::sleep_for(std::chrono::seconds(100)); }

}  // namespace

int main(int argc, char** argv) {
  os::open_standard_streams();
  os::write_no_core();
  const std::vector<std::string> words = os::arguments(argc, argv);
  const std::string what = words.size() > 1 ? words[1] : "";
  if (what == "say")
    for (size_t k = 2; k < words.size(); ++k) std::printf("%s\n", words[k].c_str());
  if (what == "variable") std::printf("%s\n", std::getenv(words.at(2).c_str()));
  if (what == "exit") return std::atoi(words.at(2).c_str());
  if (what == "sleep") sleep_long();
  if (what == "crash") *static_cast<volatile int*>(nullptr) = 1;
  if (what == "echo")
    for (std::string line; std::getline(std::cin, line);) std::cout << "you said " << line << std::endl;
  if (what == "answer") {
    os::Answers answers;
    std::puts("noise");
    std::fflush(stdout);
    return answers.send("message\n") ? 0 : 1;
  }
  if (what == "family") {  // a grandchild that holds standard output open
    os::ChildProcess grandchild(
        os::Program{.file = os::own_program(), .words = {"child", "sleep"}, .environment = {}, .ends_with_us = false});
    std::puts("born");
    std::fflush(stdout);
    sleep_long();
  }
  return 0;
}
