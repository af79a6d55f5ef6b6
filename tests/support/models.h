// The models that tests go through.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "train/task/model.h"

namespace tutti::test {

/// The names of all models; every one has the size "tiny".
inline std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelDef* m : all_models()) names.push_back(m->name);
  return names;
}

/// What INSTANTIATE_TEST_SUITE_P calls a model's test.
inline std::string model_label(const testing::TestParamInfo<std::string>& info) { return info.param; }

}  // namespace tutti::test
