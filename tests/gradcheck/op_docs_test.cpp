// docs/OPS.md is what the records say. TUTTI_UPDATE=1 rewrites it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "graph/op_docs.h"

namespace tutti {
namespace {

TEST(OpDocs, FileIsCurrent) {
  std::string now = ops_markdown();
  if (std::getenv("TUTTI_UPDATE")) std::ofstream(TUTTI_OPS_MD) << now;
  std::ifstream file(TUTTI_OPS_MD);
  ASSERT_TRUE(file) << TUTTI_OPS_MD << " is missing: run this test with TUTTI_UPDATE=1";
  std::string kept((std::istreambuf_iterator<char>(file)), {});
  EXPECT_TRUE(kept == now) << TUTTI_OPS_MD << " is stale: run this test with TUTTI_UPDATE=1 and commit the file";
}

}  // namespace
}  // namespace tutti
