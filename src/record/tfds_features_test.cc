#include "record/tfds_features.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "penstock/error.h"
#include "record/example.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

/// A file with these features.
std::string file_of(const std::string& features) {
  return R"({"pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
             "featuresDict": {"features": {)" +
         features + "}}}";
}

/// The spec of what is read, and what is left out.
std::string read(const std::string& features) {
  const TfdsFeatures found = parse_tfds_features(file_of(features), "features.json");
  std::string text = make_example_decoder(found.features)->spec().text();
  for (const std::string& each : found.left_out) text += "; " + each;
  return text;
}

TEST(TfdsFeaturesTest, AnImageDatasetHasBytesAndALabel) {
  const TfdsFeatures found = parse_tfds_features(file_of(R"(
    "image": {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
              "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8",
                        "encodingFormat": "png"}},
    "label": {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
              "classLabel": {"numClasses": "10"}},
    "file_name": {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text",
                  "text": {}})"),
                                                 "features.json");
  EXPECT_EQ(make_example_decoder(found.features)->spec().text(),
            "{file_name: string[], image: bytes[], label: i64[]}");
  EXPECT_THAT(found.left_out, IsEmpty());
}

TEST(TfdsFeaturesTest, TensorsKeepTheirDtypeAndShape) {
  EXPECT_EQ(read(R"(
    "a": {"tensor": {"shape": {"dimensions": ["3", "2"]}, "dtype": "float32", "encoding": "none"}},
    "b": {"tensor": {"shape": {}, "dtype": "bool"}},
    "c": {"pythonClassName": "tensorflow_datasets.core.features.scalar.Scalar",
          "tensor": {"dtype": "int32", "shape": {}}},
    "d": {"tensor": {"shape": {"dimensions": ["-1", "4"]}, "dtype": "float64"}},
    "e": {"tensor": {"shape": {}, "dtype": "string"}},
    "f": {"audio": {"shape": {"dimensions": ["-1"]}, "dtype": "int64", "fileFormat": "wav"}},
    "g": {"boundingBox": {"shape": {"dimensions": ["4"]}, "dtype": "float32"}},
    "h": {"tensor": {"shape": {"dimensions": ["2"]}, "dtype": "uint16", "encoding": "bytes"}})"),
            "{a: f32[3, 2], b: bool[], c: i32[], d: f64[?, 4], e: bytes[], f: i64[?], g: f32[4], "
            "h: u16[2]}");
  EXPECT_TRUE(parse_tfds_features(
                  file_of(R"("h": {"tensor": {"dtype": "uint8", "encoding": "bytes"}})"), "")
                  .features[0]
                  .raw);
}

TEST(TfdsFeaturesTest, NestedNamesAreJoined) {
  EXPECT_EQ(read(R"(
    "meta": {"featuresDict": {"features": {"id": {"classLabel": {}},
      "more": {"featuresDict": {"features": {"x": {"text": {}}}}}}}},
    "pair": {"translation": {"languages": ["de", "en"]}},
    "objects": {"sequence": {"length": "-1", "feature": {"featuresDict": {"features": {
      "bbox": {"boundingBox": {}}, "label": {"classLabel": {"numClasses": "80"}},
      "area": {"tensor": {"shape": {}, "dtype": "int64"}}}}}}})"),
            "{meta/id: i64[], meta/more/x: string[], objects/area: i64[?], objects/bbox: f32[?, "
            "4], objects/label: i64[?], pair/de: string[], pair/en: string[]}");
}

TEST(TfdsFeaturesTest, ASequenceOfKnownLengthHasItsSize) {
  EXPECT_EQ(read(R"("s": {"sequence": {"length": "3", "feature": {"classLabel": {}}}},
                    "t": {"sequence": {"feature": {"tensor": {"shape": {"dimensions": ["2"]},
                                                              "dtype": "int8"}}}})"),
            "{s: i64[3], t: i8[?, 2]}");
}

TEST(TfdsFeaturesTest, WhatCannotBeReadIsLeftOutAndNamed) {
  EXPECT_EQ(
      read(R"("x": {"text": {}}, "a": {"video": {}},
    "b": {"sequence": {"feature": {"text": {}}}},
    "c": {"sequence": {"feature": {"sequence": {"feature": {"classLabel": {}}}}}},
    "d": {"tensor": {"shape": {}, "dtype": "complex64"}},
    "e": {"tensor": {"shape": {"dimensions": ["-1", "-1"]}, "dtype": "uint8"}},
    "f": {"tensor": {"shape": {"dimensions": ["2"]}, "dtype": "uint8", "encoding": "zlib"}},
    "g": {"pythonClassName": "a.b.Optional", "optional": {}}, "h": {},
    "i": {"tensor": {"shape": {"dimensions": ["2"]}, "dtype": "string"}},
    "j": {"translation": {"languages": ["de"], "variableLanguagesPerExample": true}})"),
      "{x: string[]}; a (several encoded images in one record); b (several texts in one record); "
      "c (a sequence of sequences); d (of complex64); e (of the shape [?, ?]); f (zlib of "
      "numbers); g (of the kind Optional); h (of an unknown kind); i (several texts in one "
      "record); j "
      "(several texts in one record)");
}

TEST(TfdsFeaturesTest, OlderFilesHaveTheFeaturesAsAText) {
  const TfdsFeatures found = parse_tfds_features(
      R"({"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
          "content": "{\"features\": {\"label\": {\"classLabel\": {}}}}",
          "proto_cls": "tensorflow_datasets.FeaturesDict"})",
      "features.json");
  ASSERT_EQ(found.features.size(), 1U);
  EXPECT_EQ(found.features[0].name, "label");
}

TEST(TfdsFeaturesTest, OtherFilesAreRefused) {
  const auto refuses = [](const std::string& text, const std::string& why) {
    EXPECT_THAT([&] { (void)parse_tfds_features(text, "dir/features.json"); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr(why), HasSubstr("dir/features.json"))));
  };
  refuses("", "not JSON");
  refuses("[]", "no featuresDict");
  refuses("{}", "no featuresDict");
  refuses(R"({"featuresDict": {"features": []}})", "no object");
  refuses(file_of(""), "can be read");
  refuses(file_of(R"("x": {"video": {}})"), "x (several encoded images");
  refuses(file_of(R"("x": {"tensor": {"dtype": "int8", "shape": {"dimensions": ["a"]}}})"),
          "\"a\" is no size");
  refuses(file_of(R"("x": {"tensor": {"dtype": "int8", "shape": {"dimensions": [{}]}}})"),
          "not that of a dataset");
  refuses(file_of(R"("x": {"translation": {"languages": [1]}})"), "not that of a dataset");
  refuses(std::string(10'000, '['), "not JSON");
}

}  // namespace
}  // namespace penstock
