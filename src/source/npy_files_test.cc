#include "penstock/npy_files.h"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temp_folder_for_tests.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/plan.h"
#include "record/zip_archives_for_tests.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::npy;
using testing::raw;
using ::testing::ThrowsMessage;
using testing::zip;
using testing::zip_part;

std::string floats(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
  return raw(values);
}

std::string reversed(std::string text) {
  return {text.rbegin(), text.rend()};
}

std::uint64_t delivered_rows(const Dataset& batches) {
  std::uint64_t rows = 0;
  for (const Batch& batch : Loader(batches)) rows += batch.rows();
  return rows;
}

/// Why a file with this content is refused.
std::string refusal(const std::string& content, const NpyFileOptions& options = {}) {
  const TempFolder folder;
  const std::string path = folder.write("x.npy", content);
  try {
    from_npy({path}, options);
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "none";
}

TEST(NpyFilesTest, RowsAreSamplesInPlace) {
  const TempFolder folder;
  for (const int version : {1, 2, 3}) {
    const std::string path =
        folder.write("x.npy", npy("<f4", "(3, 2)", floats(6), "False", version));
    const Dataset data = from_npy({path});
    EXPECT_EQ(data.cardinality().count(), 3U);
    EXPECT_EQ(data.element_spec(), ElementSpec::single(Dtype::f32, {2}));
    EXPECT_THAT(data.sample(1).tensor().values<float>(), ElementsAre(2, 3));
  }
  EXPECT_EQ(from_npy({folder.write("e.npy", npy("<f4", "(0, 2)", ""))}).cardinality().count(), 0U);
  const Dataset empty_rows = from_npy({folder.write("z.npy", npy("<f4", "(4, 0)", ""))});
  EXPECT_EQ(empty_rows.sample(3).tensor().raw().size(), 0U);
  EXPECT_EQ(delivered_rows(empty_rows.batch(3)), 4U);
}

TEST(NpyFilesTest, FilesFollowEachOther) {
  const TempFolder folder;
  folder.write("1.npy", npy("<f4", "(2,)", floats(2, 10)));
  folder.write("0.npy", npy(">f4", "(1,)", reversed(floats(1, 9))));
  const Dataset data = from_npy({folder.path("*.npy")});
  EXPECT_EQ(data.sample(0).tensor().item<float>(), 9);
  EXPECT_EQ(data.sample(2).tensor().item<float>(), 11);
  folder.write("2.npy", npy("<f4", "(2, 1)", floats(2)));
  EXPECT_THAT([&] { from_npy({folder.path("*.npy")}); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("2.npy: its rows are f32[1]"), HasSubstr("0.npy are f32[]"))));
}

TEST(NpyFilesTest, EveryDtypeIsReadInBothByteOrders) {
  const std::vector<std::pair<std::string, Dtype>> dtypes = {
      {"u1", Dtype::u8},  {"u2", Dtype::u16}, {"u4", Dtype::u32}, {"u8", Dtype::u64},
      {"i1", Dtype::i8},  {"i2", Dtype::i16}, {"i4", Dtype::i32}, {"i8", Dtype::i64},
      {"f2", Dtype::f16}, {"f4", Dtype::f32}, {"f8", Dtype::f64}};
  const std::string bytes = "\x01\x02\x03\x04\x05\x06\x07\x08";
  const TempFolder folder;
  for (const auto& [name, dtype] : dtypes) {
    const std::string value = bytes.substr(0, dtype_size(dtype));
    const std::string values = value + reversed(value);
    const Dataset little = from_npy({folder.write("a", npy("<" + name, "(1, 2)", values))});
    const Dataset big = from_npy({folder.write("b", npy(">" + name, "(1, 2)", values))});
    EXPECT_EQ(little.element_spec(), ElementSpec::single(dtype, {2}));
    EXPECT_EQ(big.element_spec(), little.element_spec());
    EXPECT_EQ(little.sample(0).tensor().text(), values);
    EXPECT_EQ(big.sample(0).tensor().text(), reversed(value) + value);
  }
  const Dataset flags =
      from_npy({folder.write("f", npy("|b1", "(3,)", std::string("\x00\x01\x07", 3)))});
  EXPECT_EQ(flags.sample(2).tensor().text(), "\x01");
}

TEST(NpyFilesTest, StringsLoseTheZerosAtTheirEnd) {
  const TempFolder folder;
  const Dataset bytes =
      from_npy({folder.write("s", npy("|S3", "(3,)", std::string("ab\0\0x\0\0\0\0", 9)))});
  EXPECT_EQ(bytes.element_spec(), ElementSpec::single(Dtype::bytes));
  EXPECT_EQ(bytes.sample(0).tensor().text(), "ab");
  EXPECT_EQ(bytes.sample(1).tensor().text(), std::string("\0x", 2));
  EXPECT_EQ(bytes.sample(2).tensor().text(), "");
  const std::vector<std::uint32_t> letters{'a', 0x20AC, 0, 0x1F600, 0xE9, 'z'};
  const std::string low = raw(letters);
  std::string high;
  for (std::size_t i = 0; i < low.size(); i += 4) high += reversed(low.substr(i, 4));
  for (const Dataset& text : {from_npy({folder.write("u", npy("<U3", "(2,)", low))}),
                              from_npy({folder.write("v", npy(">U3", "(2,)", high))})}) {
    EXPECT_EQ(text.element_spec(), ElementSpec::single(Dtype::string));
    EXPECT_EQ(text.sample(0).tensor().text(), "a\xE2\x82\xAC");
    EXPECT_EQ(text.sample(1).tensor().text(), "\xF0\x9F\x98\x80\xC3\xA9z");
  }
  const Dataset wrong =
      from_npy({folder.write("w", npy("<U1", "(1,)", raw(std::vector<std::uint32_t>{0xD800})))});
  EXPECT_THAT([&] { (void)wrong.sample(0); },
              ThrowsMessage<SampleError>(HasSubstr("not one of Unicode")));
  EXPECT_THAT(refusal(npy("|S3", "(1, 1)", "abc")), HasSubstr("one string per row"));
}

TEST(NpyFilesTest, WhatIsNoArrayOfRowsIsRefused) {
  EXPECT_THAT(refusal("abc"), HasSubstr("neither an npy nor an npz"));
  EXPECT_THAT(refusal(""), HasSubstr("neither an npy nor an npz"));
  EXPECT_THAT(refusal(npy("<f4", "()", floats(1))), HasSubstr("np.atleast_1d"));
  EXPECT_THAT(refusal(npy("<f4", "(2, 2)", floats(4), "True")),
              AllOf(HasSubstr("Fortran order"), HasSubstr("np.ascontiguousarray")));
  EXPECT_EQ(refusal(npy("<f4", "(4, 1)", floats(4), "True")), "none");
  EXPECT_THAT(refusal(npy("|O", "(1,)", "x")), HasSubstr("Python objects"));
  EXPECT_THAT(refusal(npy("<M8[ns]", "(1,)", "12345678")), HasSubstr("astype(np.int64)"));
  EXPECT_THAT(refusal(npy("<c8", "(1,)", "12345678")), HasSubstr("view(np.float32)"));
  EXPECT_THAT(refusal(npy("|V3", "(1,)", "123")), HasSubstr("view(np.uint8)"));
  const std::string fields = "\x93NUMPY\x01";
  const std::string text = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n";
  EXPECT_THAT(refusal(fields + '\0' + testing::little(text.size(), 2) + text + floats(1)),
              HasSubstr("several fields"));
  EXPECT_THAT(refusal("\x93NUMPY\x02" + std::string(1, '\0') + testing::little(1U << 30, 4)),
              HasSubstr("more than arrays of numbers"));
}

TEST(NpyFilesTest, TheValuesMustBeTheRestOfTheFile) {
  EXPECT_THAT(refusal(npy("<f4", "(3,)", floats(2))),
              AllOf(HasSubstr("<f4[3], is cut"), HasSubstr("8 bytes of values")));
  EXPECT_THAT(refusal(npy("<f4", "(3,)", floats(4))), HasSubstr("4 bytes more"));
  EXPECT_THAT(refusal(npy("<f8", "(140737488355328, 140737488355328)", floats(4))),
              HasSubstr("is cut"));
  const std::string whole = npy("<f4", "(3,)", floats(3));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_NE(refusal(whole.substr(0, bytes)), "none") << bytes;
}

TEST(NpyFilesTest, ASampleOfAnNpzHasARowOfEachArray) {
  const std::string x = npy("<f4", "(3, 2)", floats(6));
  const std::string y = npy("<i8", "(3,)", raw(std::vector<std::int64_t>{7, 8, 9}));
  const std::string name = npy("|S2", "(3,)", "aabbcc");
  const TempFolder folder;
  for (const bool zip64 : {false, true}) {
    for (const bool deflate : {false, true}) {
      const std::string path =
          folder.write("x.npz", zip({zip_part("y.npy", y), zip_part("x.npy", x, deflate),
                                     zip_part("name.npy", name, deflate)},
                                    zip64));
      const Dataset data = from_npy({path, path});
      EXPECT_EQ(data.element_spec().text(), "{name: bytes[], x: f32[2], y: i64[]}");
      EXPECT_EQ(data.cardinality().count(), 6U);
      const Sample sample = data.sample(4);
      EXPECT_THAT(sample["x"].values<float>(), ElementsAre(2, 3));
      EXPECT_EQ(sample["y"].item<std::int64_t>(), 8);
      EXPECT_EQ(sample["name"].text(), "bb");
      std::vector<std::int64_t> all;
      for (const Batch& batch : Loader(data.shuffle().batch(4))) {
        const auto some = batch.values<std::int64_t>("y");
        all.insert(all.end(), some.begin(), some.end());
      }
      EXPECT_THAT(all, ::testing::UnorderedElementsAre(7, 7, 8, 8, 9, 9));
      EXPECT_EQ(from_npy({path}, {.fields = {"y"}}).element_spec().text(), "{y: i64[]}");
    }
  }
}

TEST(NpyFilesTest, ArraysOfOtherLengthsAndOtherMembersAreRefusedUnlessLeftOut) {
  const std::string two = npy("<f4", "(2,)", floats(2));
  const std::string three = npy("<f4", "(3,)", floats(3));
  const std::string uneven = zip({zip_part("a.npy", two), zip_part("b.npy", three)});
  EXPECT_THAT(refusal(uneven), AllOf(HasSubstr("a has 2 rows, but b has 3"), HasSubstr("fields")));
  EXPECT_EQ(refusal(uneven, {.fields = {"b"}}), "none");
  EXPECT_THAT(refusal(uneven, {.fields = {"c"}}),
              AllOf(HasSubstr("no array \"c\""), HasSubstr("it has: a, b")));
  const std::string other = zip({zip_part("a.npy", two), zip_part("README", "text")});
  EXPECT_THAT(refusal(other),
              AllOf(HasSubstr("README, which is not an array"), HasSubstr("{\"a\"}")));
  EXPECT_EQ(refusal(other, {.fields = {"a"}}), "none");
  EXPECT_THAT(refusal(zip({})), HasSubstr("no arrays"));
  EXPECT_THAT(refusal(zip({zip_part("a/b.npy", two)})), HasSubstr("cannot be called \"a/b\""));
  EXPECT_THAT(refusal(zip({zip_part("a.npy", "no npy")})), HasSubstr("\"a\" is not an npy file"));
  EXPECT_THAT(refusal(two, {.fields = {"a"}}), HasSubstr("leave fields out"));
  EXPECT_THAT(refusal(zip({zip_part("a.npy", npy("|O", "(2,)", "xx"))})),
              HasSubstr("Python objects"));
}

TEST(NpyFilesTest, CompressedArraysTakeNoMoreMemoryThanAllowed) {
  const std::string zeros = npy("<f4", "(100000,)", std::string(400'000, '\0'));
  const std::string archive = zip({zip_part("a.npy", zeros, true), zip_part("b.npy", zeros)});
  EXPECT_EQ(refusal(archive, {.bytes_max = zeros.size()}), "none");
  EXPECT_THAT(refusal(archive, {.bytes_max = zeros.size() - 1}),
              AllOf(HasSubstr("bytes_max is"), HasSubstr("np.savez")));
  // A bomb: a terabyte is claimed, for which there would have to be a gigabyte.
  testing::ZipPart bomb = zip_part("a.npy", zeros, true);
  bomb.bytes = std::uint64_t{1} << 40;
  EXPECT_THAT(refusal(zip({bomb}, true)), HasSubstr("claims to be"));
  const TempFolder folder;
  std::vector<testing::ZipPart> many;
  for (int i = 0; i < 20; ++i) many.push_back(zip_part(std::to_string(i) + ".npy", zeros, true));
  EXPECT_THAT(refusal(zip(many), {.bytes_max = 1'000'000}), HasSubstr("need 8"));
}

TEST(NpyFilesTest, AFileThatIsCutMeanwhileIsAnError) {
  const TempFolder folder;
  const std::string path = folder.write("x.npy", npy("<f4", "(1000,)", floats(1000)));
  const Dataset data = from_npy({path});
  std::filesystem::resize_file(path, 500);
  EXPECT_THAT([&] { (void)data.sample(999); },
              ThrowsMessage<SampleError>(AllOf(HasSubstr(path), HasSubstr("changed"))));
}

TEST(NpyFilesTest, APlanKeepsTheOptions) {
  const TempFolder folder;
  const std::string path =
      folder.write("x.npz", zip({zip_part("a.npy", npy("<f4", "(2,)", floats(2)), true),
                                 zip_part("b.npy", npy("<f4", "(2,)", floats(2)))}));
  const Dataset data = from_npy({path}, {.fields = {"a"}, .bytes_max = 10'000}).batch(2);
  const Plan back = Plan::parse(Plan(data).serialize(), {});
  EXPECT_EQ(back.dataset().describe(), data.describe());
  EXPECT_EQ(back.digests(), Plan(data).digests());
}

}  // namespace
}  // namespace penstock
