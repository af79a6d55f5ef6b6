// The `tutti` command: parses, runs one subcommand, and turns errors into one message and an exit code.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/command.h"
#include "cli/help/help.h"
#include "cli/print.h"
#include "cli/world_run.h"
#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "core/os/file.h"
#include "core/os/signals.h"
#include "core/os/terminal.h"
#include "core/os/this_process.h"

namespace tutti::cli {
namespace {

bool as_json = false;

/// In the order of help texts.
constexpr AddCommand* commands[] = {
    add_devices,  add_train,   add_eval,   add_predict,       add_export,     add_sample,    add_data,
    add_generate, add_inspect, add_layers, add_models,        add_new_model,  add_ops,       add_compare,
    add_sweep,    add_parity,  add_bisect, add_replay,        add_verify_run, add_bench,     add_conformance,
    add_plan,     add_top,     add_doctor, add_report_device, add_help,       add_completion};

/// Commands of which a launcher may start several processes: one trains in all, the others describe each rank's
/// machine.
const std::set<std::string> of_several = {"train", "devices", "doctor"};

int exit_code(Code code) {
  return code == Code::device_lost || code == Code::timeout || code == Code::internal ? stopped : bad_input;
}

/// Escapes unprintable characters and truncates long lines and texts.
std::string shown(const std::string& raw) {
  constexpr size_t most = 16000;
  std::string text = printable(raw);
  if (text.size() <= most) return text;
  size_t end = most;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

/// Prints an error. Messages may contain text from files and plugins.
int report(const std::string& raw_message, const std::string& raw_remedy, int code) {
  hand_over(raw_message, raw_remedy, code);
  std::string message = shown(raw_message), remedy = shown(raw_remedy);
  if (as_json) print_json({{"error", message}, {"remedy", remedy}, {"exit_code", code}});
  print_err("tutti: {}\n", message);
  if (!remedy.empty()) print_err("  try: {}\n", remedy);
  return code;
}

std::string names(const std::vector<CLI::App*>& subs) {
  std::string text;
  for (const CLI::App* sub : subs) text += (text.empty() ? "" : ", ") + sub->get_name();
  return text;
}

/// Memory for the message and the clean-up after an allocation has failed; null once it is given back.
std::atomic<void*> reserve;
std::terminate_handler usual_end;

void give_reserve_back() {
  std::free(reserve.exchange(nullptr));
  throw std::bad_alloc();
}

/// Memory may end where no exception can pass: in a destructor, in a thread.
void ended_without_memory() {
  if (reserve) usual_end();
  try {
    report("out of host memory", "use a smaller batch or data set", bad_input);
  } catch (...) {
    constexpr std::string_view text = "tutti: out of host memory\n";
    os::write_some(2, text.data(), text.size());
  }
  std::_Exit(bad_input);
}

void prepare_for_little_memory() {
  reserve = std::malloc(size_t{1} << 20);
  std::set_new_handler(give_reserve_back);
  usual_end = std::set_terminate(ended_without_memory);
}

/// The parser's message, improved if it is not specific enough.
std::string explain(const CLI::ParseError& e, CLI::App& app, int argc, char** argv) {
  if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-')
    return fmt::format("unknown subcommand '{}', expected one of: {}", argv[1], names(app.get_subcommands({})));
  return e.what();
}

/// The remedy: an option similar to the first unknown one, else --help.
std::string remedy_of(const CLI::App& app, const CLI::App& sub, int argc, char** argv) {
  std::vector<std::string> known;
  for (const CLI::Option* o : sub.get_options())
    for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word.resize(std::min(word.find('='), word.size()));
    if (!word.starts_with("--") || std::ranges::find(known, word) != known.end()) continue;
    if (const std::string* meant = nearest_of(word, known)) return fmt::format("did you mean {}?", *meant);
    break;
  }
  return &sub == &app ? "tutti --help" : fmt::format("tutti {} --help", sub.get_name());
}

/// Whether a JSON document is written to stdout. Determined before parsing, so that errors in other arguments are JSON
/// too.
bool wants_json(const CLI::App& app, int argc, char** argv) {
  auto chosen = app.get_subcommands([&](const CLI::App* sub) { return argc > 1 && sub->get_name() == argv[1]; });
  const CLI::Option* option = chosen.empty() ? nullptr : chosen[0]->get_option_no_throw("--json");
  bool takes_file = option && option->get_items_expected_max() > 0;
  bool wanted = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--json")  // followed by "-", another option or nothing
      wanted = !takes_file || i + 1 == argc || argv[i + 1][0] == '-';
    else if (takes_file && word.starts_with("--json="))
      wanted = word == "--json=-";
  }
  return wanted;
}

/// Refuses empty values, which usually come from unset shell variables, instead of using the default.
void refuse_empty_values(const CLI::App& sub) {
  for (const CLI::Option* o : sub.get_options())
    for (const std::string& value : o->results())
      if (value.empty() && o->get_items_expected_min() > 0)
        throw invalid(fmt::format("{} has an empty value", o->get_name()), "give a value, or omit the option");
}

/// Checks that stdout was written; a full disk is an error. If the reader of a pipe has ended, as in `tutti ops |
/// head`, the process ends silently.
int checked(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  errno = EIO;
  os::write_some(1, "\n", 1);  // sets errno again, because the first failure's value may be lost
  as_json = false;             // stdout cannot be written
  if (errno == EPIPE) os::end_by_closed_pipe();
  return report(fmt::format("cannot write to stdout: {}", std::strerror(errno)), "write to a disk with free space",
                stopped);
}

}  // namespace

void add_json_flag(CLI::App& sub, bool& json) {
  sub.add_flag("--json", json, "Print one JSON document to stdout; everything else goes to stderr");
}

std::string json_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void print_json(const nlohmann::ordered_json& document) { os::write_text(os::Stream::out, json_text(document)); }

int run(int argc, char** argv) {
  prepare_for_little_memory();
  os::open_standard_streams();
  os::prepare_signals();
  os::prepare_terminal();
  set_option_style([](std::string_view name, std::string_view value) {
    return value.empty() ? fmt::format("--{}", name) : fmt::format("--{} {}", name, value);
  });
  CLI::App app{"Tutti: one model, every device. Trains neural networks on the devices that plugins offer."};
  app.allow_windows_style_options(false);  // "/x" is a path everywhere
  app.set_version_flag("--version", "tutti " TUTTI_VERSION);
  app.require_subcommand(1);
  app.formatter(help_formatter());
  app.set_help_all_flag("--help-all", "Print this help message with all options and exit");
  app.option_defaults()->always_capture_default();
  // Scripts may append overriding options.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  Action action;
  for (AddCommand* add : commands) add(app, action);
  as_json = wants_json(app, argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "train") expect_world();
  try {
    app.parse(argc, argv);
    const CLI::App& sub = *app.get_subcommands()[0];
    if (!of_several.contains(sub.get_name())) expect_one_process(sub.get_name());
    refuse_empty_values(sub);
    return checked(action());
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return checked(app.exit(e));
    CLI::App* sub = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
    return report(explain(e, app, argc, argv), remedy_of(app, *sub, argc, argv), bad_input);
  } catch (const Error& e) {
    return report(e.what(), e.remedy, exit_code(e.code));
  } catch (const std::system_error& e) {  // printing throws on write errors
    return std::ferror(stdout) ? checked(stopped) : report(fmt::format("unexpected: {}", e.what()), "", stopped);
  } catch (const std::bad_alloc&) {
    return report("out of host memory", "use a smaller batch or data set", bad_input);
  } catch (const std::exception& e) {
    return report(fmt::format("unexpected: {}", e.what()), "", stopped);
  }
}

}  // namespace tutti::cli

int main(int argc, char** argv) {
  std::vector<std::string> words = tutti::os::arguments(argc, argv);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return tutti::cli::leave_world(tutti::cli::run(static_cast<int>(words.size()), pointers.data()));
}
