#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "op/op.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string made_file(const std::string& name, const std::string& content) {
  const std::string path = testing::TempDir() + "penstock_read_file_" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

Result<Sample> run(const OpCall& call, const Sample& sample) {
  Scratch scratch;
  return call.op()->run_sample(sample, OpContext(scratch), 3);
}

TEST(ReadFileTest, ReadFileReplacesThePathByTheBytes) {
  const auto made = run(read_file(), Tensor::bytes(made_file("a", "photo"), Dtype::string));
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_EQ((*made).tensor().text(), "photo");
  EXPECT_EQ((*made).tensor().dtype(), Dtype::bytes);
}

TEST(ReadFileTest, ReadFileKeepsTheOtherFields) {
  const auto made = run(read_file("file"),
                        Sample::dict({{"file", Tensor::bytes(made_file("b", "x"), Dtype::string)},
                                      {"label", Tensor::scalar<std::int32_t>(7)},
                                      {"word", Tensor::bytes("w", Dtype::string)}}));
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_EQ((*made)["file"].text(), "x");
  EXPECT_EQ((*made)["label"].item<std::int32_t>(), 7);
  EXPECT_EQ((*made)["word"].text(), "w");
}

TEST(ReadFileTest, AnEmptyFileIsNoBytes) {
  const auto made = run(read_file(), Tensor::bytes(made_file("empty", ""), Dtype::string));
  ASSERT_TRUE(made) << made.failure().message;
  EXPECT_EQ((*made).tensor().text(), "");
}

TEST(ReadFileTest, AFailedReadNamesTheFileAndTheRow) {
  const std::string path = testing::TempDir() + "penstock_read_file_not_there";
  const auto made = run(read_file(), Tensor::bytes(path, Dtype::string));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.failure().where.file, path);
  EXPECT_EQ(made.failure().row, 3U);
  EXPECT_FALSE(made.failure().transient());
  EXPECT_FALSE(run(read_file(), Tensor::bytes(testing::TempDir(), Dtype::string)).ok());
  EXPECT_FALSE(run(read_file(), Tensor::bytes(std::string("a\0b", 3), Dtype::string)).ok());
}

TEST(ReadFileTest, ANumberIsNotAPath) {
  EXPECT_THAT([] { (void)read_file().op()->output(ElementSpec::single(Dtype::i64)); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("i64"), HasSubstr("list_files"))));
  EXPECT_THAT([] { (void)read_file("x").op()->output(ElementSpec::single(Dtype::string)); },
              ThrowsMessage<ConfigError>(HasSubstr("no field \"x\"")));
}

}  // namespace
}  // namespace penstock
