// Whole columns of a source, for tests.
#pragma once
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"

namespace tutti::test {

template <class T>
std::vector<T> all_of(const data::Source& s, const std::string& column) {
  return data::read_samples(s, column, data::sequential_order(s.size())).as<T>();
}

}  // namespace tutti::test
