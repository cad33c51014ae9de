#include "source/reader.h"

#include <gtest/gtest.h>

#include "base/temp_folder_for_tests.h"

namespace penstock {
namespace {

class Nothing final : public Reader {
 public:
  Result<Bytes> get(const Read&, const ReadKey&) override { return Bytes(); }
  Result<Bytes> get_file(const std::string&, std::uint64_t) override { return Bytes(); }
};

TEST(ReaderTest, ByDefaultFilesAreReadDirectly) {
  const TempFolder folder;
  const std::string path = folder.write("a", "0123");
  EXPECT_EQ((*current_reader().get({path, 1, 2}, {})).size(), 2U);
  EXPECT_EQ((*current_reader().get({path, 0, 4, true}, {})).size(), 4U);
  EXPECT_FALSE(current_reader().get({path, 0, 3, true}, {}).ok());
  EXPECT_EQ((*current_reader().get_file(path, 4)).size(), 4U);
}

TEST(ReaderTest, AFileOfUnknownSizeIsReadWhole) {
  const TempFolder folder;
  EXPECT_EQ((*read_now(Io::real(), {folder.write("a", "012"), 0, UINT64_MAX, true})).size(), 3U);
}

TEST(ReaderTest, AThreadMayHaveItsOwnReader) {
  Nothing nothing;
  Reader* const before = set_reader(&nothing);
  EXPECT_TRUE(current_reader().get({"not there", 0, 1}, {}).ok());
  EXPECT_EQ(set_reader(before), &nothing);
  EXPECT_FALSE(current_reader().get({"not there", 0, 1}, {}).ok());
}

}  // namespace
}  // namespace penstock
