#include "train/run/position.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti {

void Position::change_batch(int64_t now, bool last, int64_t step) {
  if (in_steps) {  // epoch and sample are computed in change_set()
    if (batch == 0) batch = now, keep_last = last;
    next_batch = now, next_keep_last = last;
    return;
  }
  if (batch != 0 && batch != now) {
    // double, because an integer could overflow
    double samples_seen = static_cast<double>(step + ahead) * static_cast<double>(batch);
    ahead = static_cast<int64_t>(std::floor(samples_seen / static_cast<double>(now))) - step;
  }
  batch = now;
  keep_last = last;
}

void Position::change_set(int64_t size, int64_t step) {
  if (in_steps) {
    in_steps = false;
    samples = size;
    int64_t per_epoch = std::max<int64_t>(steps_in(size), 1);
    epoch = step / per_epoch;
    sample = step % per_epoch * batch;
    change_batch(next_batch, next_keep_last, step);
  }
  if (samples != size) sample = 0;
  samples = size;
  if (sample > 0 && steps_left_in_epoch() == 0) ++epoch, sample = 0;
}

void Position::advance(int64_t count) {
  sample += count;
  if (steps_left_in_epoch() == 0) ++epoch, sample = 0;
}

std::string to_text(const Position& p) {
  return nlohmann::json{{"epoch", p.epoch}, {"sample", p.sample}, {"samples", p.samples},
                        {"batch", p.batch}, {"ahead", p.ahead},   {"keep_last", p.keep_last}}
      .dump();
}

namespace {

/// Reads the batch size from the run options in a checkpoint of version 0.2.
Position read_old(const std::map<std::string, std::string>& metadata) {
  Position p{.in_steps = true};
  auto it = metadata.find("run");
  auto run = it == metadata.end() ? nlohmann::json() : nlohmann::json::parse(it->second, nullptr, false);
  if (!run.is_object() || !run.contains("batch") || !run["batch"].is_string()) return p;
  p.batch = std::max<int64_t>(parse_number<int64_t>(run["batch"].get<std::string>()).value_or(0), 0);
  p.keep_last = run.value("keep-last", nlohmann::json("false")) == "true";
  return p;
}

}  // namespace

Position read_position(const std::map<std::string, std::string>& metadata, const std::string& path) {
  auto it = metadata.find("position");
  if (it == metadata.end()) return read_old(metadata);
  Position p;
  try {
    auto j = nlohmann::json::parse(it->second);
    p = {.epoch = j.at("epoch"),
         .sample = j.at("sample"),
         .samples = j.at("samples"),
         .batch = j.at("batch"),
         .ahead = j.at("ahead"),
         .keep_last = j.at("keep_last")};
  } catch (const nlohmann::json::exception&) {
    p.epoch = -1;
  }
  constexpr int64_t most = int64_t{1} << 31;
  bool possible = p.epoch >= 0 && p.epoch < most && p.sample >= 0 && p.sample <= p.samples && p.samples < most &&
                  p.batch >= 0 && p.batch < most && p.ahead > -most && p.ahead < most * (1 << 20);
  if (!possible)
    throw invalid(fmt::format("{}: the metadata 'position' is '{}', which is not a valid position in a training run",
                              path, printable(it->second, 80)),
                  "the file is damaged or was not written by Tutti: use another checkpoint");
  return p;
}

}  // namespace tutti
