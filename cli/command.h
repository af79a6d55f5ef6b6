// Declarations shared by all subcommands.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace tutti::cli {

/// Exit codes of the `tutti` command; cut_off: a signal ended measurements or checks (128 + SIGINT, as in shells).
enum Exit { done = 0, stopped = 1, bad_input = 2, incomplete = 3, cut_off = 130 };

/// Runs after parsing; returns the exit code. Throws tutti::Error.
using Action = std::function<int()>;

/// Each function adds one subcommand, which sets `action` if it is chosen.
void add_devices(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_predict(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_sample(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_layers(CLI::App& app, Action& action);
void add_models(CLI::App& app, Action& action);
void add_new_model(CLI::App& app, Action& action);
void add_ops(CLI::App& app, Action& action);
void add_parity(CLI::App& app, Action& action);
void add_bisect(CLI::App& app, Action& action);
void add_verify_run(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_conformance(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_report_device(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_top(CLI::App& app, Action& action);
void add_help(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);

/// Adds --json to a subcommand. With it, errors are a JSON document too.
void add_json_flag(CLI::App& sub, bool& json);
/// Prints unusable plugins to stderr, so that missing devices are explained. Only plugins whose devices have been
/// listed are checked: see Registry::plugins.
void print_lost_plugins();
/// A document as text.
std::string json_text(const nlohmann::ordered_json& document);
/// Writes one JSON document to stdout.
void print_json(const nlohmann::ordered_json& document);

}  // namespace tutti::cli
