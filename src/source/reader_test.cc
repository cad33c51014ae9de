#include "source/reader.h"

#include <gtest/gtest.h>

#include "base/temp_folder_for_tests.h"

namespace penstock {
namespace {

TEST(ReaderTest, TheDirectReaderReadsFilesWhenItIsAsked) {
  const TempFolder folder;
  const std::string path = folder.write("a", "0123");
  EXPECT_EQ((*direct_reader().get({path, 1, 2}, {})).size(), 2U);
  EXPECT_EQ((*direct_reader().get({path, 0, 4, true}, {})).size(), 4U);
  EXPECT_FALSE(direct_reader().get({path, 0, 3, true}, {}).ok());
  EXPECT_EQ((*direct_reader().get_file(path, 4)).size(), 4U);
}

TEST(ReaderTest, AFileOfUnknownSizeIsReadWhole) {
  const TempFolder folder;
  EXPECT_EQ((*read_now(Io::real(), {folder.write("a", "012"), 0, UINT64_MAX, true})).size(), 3U);
}

}  // namespace
}  // namespace penstock
