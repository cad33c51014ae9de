#include "record/null_fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "penstock/error.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(NullFillTest, AValueOfTheFieldsTypeIsTaken) {
  const NullFill number = null_fill("from_csv", {"a", Dtype::i16, {}}, 3.0);
  EXPECT_TRUE(number.filled);
  EXPECT_EQ(number.number, (std::vector<std::byte>{std::byte{3}, std::byte{0}}));
  EXPECT_EQ(null_fill("from_csv", {"a", Dtype::string, {}}, std::string("none")).text, "none");
  EXPECT_TRUE(null_fill("from_jsonl", {"a", Dtype::f32, {kUnknown}}, {}).number.empty());
}

TEST(NullFillTest, AnotherValueIsRefused) {
  const auto refused = [](const FieldSpec& field, const NullValue& value) {
    EXPECT_THAT([&] { (void)null_fill("from_csv", field, value); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("from_csv"), HasSubstr("\"age\""))));
  };
  refused({"age", Dtype::i64, {}}, 0.5);
  refused({"age", Dtype::u8, {}}, -1.0);
  refused({"age", Dtype::i64, {}}, std::string("0"));
  refused({"age", Dtype::i64, {}}, {});
  refused({"age", Dtype::i64, {3}}, {});
  refused({"age", Dtype::string, {}}, 0.0);
}

TEST(ExcerptTest, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(excerpt("a\nb"), R"("a\x0ab")");
  EXPECT_EQ(excerpt(std::string(100, 'x')), '"' + std::string(48, 'x') + "...\" (100 bytes)");
  EXPECT_EQ(excerpt(std::string(47, 'x').append("\xC3\xA4hm")),
            '"' + std::string(47, 'x') + "...\" (51 bytes)");
  EXPECT_EQ(excerpt(std::string(60, '\xFF')).size(), 4 * 48 + 16U);
}

}  // namespace
}  // namespace penstock
