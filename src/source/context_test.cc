#include "source/context.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

class EmptyFiles final : public Reader {
 public:
  Result<Bytes> get(const Read&, const ReadKey&) override { return Bytes(); }
  Result<void> read_at(const FileHandle&, std::uint64_t, std::span<std::byte>,
                       const ReadKey&) override {
    return {};
  }
  Result<Bytes> get_file(const std::string&, std::uint64_t) override { return Bytes(); }
};

TEST(ContextTest, OfMemoryAloneReadsDirectlyAndIsNeverCancelled) {
  Scratch scratch;
  const Context context(scratch);
  const trace::MeasuredCall call = context.enter("resize#1", 7, 3);
  EXPECT_TRUE(context.at_sample(8));
  EXPECT_FALSE(context.cancelled());
  EXPECT_EQ(&context.reader, &direct_reader());
  EXPECT_FALSE(context.reader.get({"not there", 0, 1}, {}).ok());
}

TEST(ContextTest, RecordsWhatItsThreadDoesAndEndsAtTheNextSampleWhenCancelled) {
  Scratch scratch;
  EmptyFiles files;
  trace::Activity activity;
  const Context context(scratch, files, &activity);
  EXPECT_TRUE(context.reader.get({"not there", 0, 1}, {}).ok());
  const trace::MeasuredCall call = context.enter("resize#1", 7, 3);
  EXPECT_EQ(activity.op(), "resize#1");
  EXPECT_TRUE(context.at_sample(8));
  EXPECT_EQ(activity.first_sample, 8U);
  activity.cancelled = true;
  EXPECT_TRUE(context.cancelled());
  EXPECT_FALSE(context.at_sample(9));
}

}  // namespace
}  // namespace penstock
