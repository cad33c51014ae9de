#include "verb/json_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "penstock/error.h"

namespace penstock {
namespace {

TEST(JsonValuesTest, FieldsAreReadAsTheyWereWritten) {
  const std::vector<FieldSpec> fields{
      {"a", Dtype::boolean, {}}, {"b/c", Dtype::string, {}}, {"d", Dtype::bf16, {kUnknown, 3}}};
  EXPECT_EQ(parse_fields(*parse_json(json_of_fields(fields).dump())), fields);
  EXPECT_THROW((void)parse_dtype_name("f33"), ConfigError);
  EXPECT_THROW((void)parse_fields(*parse_json(R"([{"path": "a"}])")), Json::exception);
}

TEST(JsonValuesTest, NullsAreReadAsTheyWereWritten) {
  const std::map<std::string, NullValue> nulls{
      {"a", 0.5}, {"b", std::string("none")}, {"c", {}}, {"d", HUGE_VAL}, {"e", -HUGE_VAL}};
  EXPECT_EQ(parse_nulls(*parse_json(json_of_nulls(nulls).dump())), nulls);
  const auto nan = parse_nulls(*parse_json(json_of_nulls({{"f", std::nan("")}}).dump()));
  EXPECT_TRUE(std::isnan(std::get<double>(nan.at("f"))));
}

}  // namespace
}  // namespace penstock
