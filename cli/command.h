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

/// Adds one subcommand, which sets `action` if it is chosen.
using AddCommand = void(CLI::App& app, Action& action);
AddCommand add_devices, add_train, add_eval, add_predict, add_export, add_sample, add_data, add_generate, add_inspect,
    add_layers, add_models, add_new_model, add_ops, add_parity, add_bisect, add_verify_run, add_replay, add_bench,
    add_conformance, add_doctor, add_report_device, add_plan, add_top, add_help, add_completion, add_compare, add_sweep;

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
