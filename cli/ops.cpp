// tutti ops: lists all ops from their records.
#include <fmt/format.h>

#include "cli/command.h"
#include "graph/op.h"
#include "graph/op_docs.h"

namespace tutti::cli {

void add_ops(CLI::App& app, Action& action) {
  CLI::App* sub =
      app.add_subcommand("ops", "List every op with its formula, attributes, and definition of value and gradient");
  static bool json = false, markdown = false;
  sub->add_flag("--markdown", markdown, "Print the reference of docs/OPS.md (without the device matrix)");
  add_json_flag(*sub, json);
  sub->callback([&action] {
    action = [] {
      if (markdown) {
        fmt::print("{}", ops_markdown());
        return done;
      }
      nlohmann::ordered_json all = nlohmann::json::array();
      for (const OpDef* op : all_ops()) {
        if (!json) fmt::print("{:<18} {}\n", op->name, op->doc);
        all.push_back({{"name", op->name},
                       {"version", op->version},
                       {"doc", op->doc},
                       {"inputs", op->inputs},
                       {"results", op->results}});
      }
      if (json) print_json({{"ops", all}});
      return done;
    };
  });
}

}  // namespace tutti::cli
