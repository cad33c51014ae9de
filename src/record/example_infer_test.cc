#include "record/example_infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "penstock/error.h"
#include "record/example.h"
#include "record/example_messages_for_tests.h"

namespace penstock {
namespace {

using messages::entry;
using messages::example;
using messages::field;
using messages::floats;
using messages::framed;
using messages::ints;
using messages::sequence_example;
using messages::steps;
using messages::texts;
using messages::unpacked_floats;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

FirstRecords records_of(const std::vector<std::string>& payloads) {
  FirstRecords first;
  first.file = "a.tfrecord";
  for (const std::string& payload : payloads) first.records.push_back(framed(payload));
  return first;
}

std::string notes(const std::vector<std::string>& payloads) {
  const InferredFeatures inferred = infer_features(records_of(payloads));
  (void)make_example_decoder(inferred.features);  // they can be decoded
  return inferred.notes;
}

TEST(InferFeaturesTest, TypesAndCountsMakeTheFields) {
  const std::string one =
      example({entry("image/encoded", texts({"x"})), entry("label", ints({1})),
               entry("f", floats({1, 2, 3})), entry("ids", ints({1, 2})), entry("s", floats({4}))});
  const std::string two = example({entry("label", ints({2})), entry("image/encoded", texts({"y"})),
                                   entry("f", unpacked_floats({4, 5, 6})), entry("ids", ints({})),
                                   entry("s", floats({4}))});
  EXPECT_EQ(notes({one, two}),
            "inferred from the first 2 records: {f: f32[3], ids: i64[?], image/encoded: bytes[], "
            "label: i64[], s: f32[]}");
  EXPECT_EQ(notes({one}),
            "inferred from the first 1 record: {f: f32[3], ids: i64[2], image/encoded: bytes[], "
            "label: i64[], s: f32[]}");
}

TEST(InferFeaturesTest, NumbersThatAreAbsentSomewhereAreRagged) {
  EXPECT_EQ(notes({example({entry("x", ints({1})), entry("y", floats({2})), entry("z", ints({3}))}),
                   example({entry("x", ints({1})), entry("z", "")})}),
            "inferred from the first 2 records: {x: i64[], y: f32[?], z: i64[?]}");
  EXPECT_EQ(notes({example({entry("x", ints({}))}), example({entry("x", ints({}))})}),
            "inferred from the first 2 records: {x: i64[?]}");
}

TEST(InferFeaturesTest, WhatCannotBeReadIsLeftOutAndNoted) {
  EXPECT_EQ(
      notes({example({entry("x", ints({1})), entry("tags", texts({"a", "b"})),
                      entry("some", texts({"a"})), entry("none", ""), entry("mixed", ints({1})),
                      entry("bad", "\x80"), entry("", ints({1})), entry("\xff", ints({1}))}),
             example({entry("x", ints({1})), entry("tags", texts({"a"})),
                      entry("mixed", floats({1}))})}),
      "inferred from the first 2 records: {x: i64[]}; left out:  (no name in UTF-8), "
      "bad (malformed in one record), mixed (integers in one record, floats in another), none "
      "(always empty), some (absent in some records), tags (2 texts in one record), \\xff (no name "
      "in UTF-8)");
}

TEST(InferFeaturesTest, ANumberOfTooManyBytesIsMalformed) {
  const std::string ten = field(3, field(1, std::string(9, '\xff') + '\x27'));
  const std::string eleven = field(3, field(1, std::string(10, '\x80') + '\x01'));
  EXPECT_EQ(notes({example({entry("x", ints({1})), entry("ten", ten), entry("eleven", eleven)})}),
            "inferred from the first 1 record: {x: i64[]}; left out: eleven (malformed in one "
            "record), ten (malformed in one record)");
}

TEST(InferFeaturesTest, FeatureListsAreSequences) {
  const std::string one = sequence_example(
      {entry("id", ints({1})), entry("twice", ints({1}))},
      {entry("frame", steps({floats({1, 2}), floats({3, 4})})), entry("token", steps({ints({1})})),
       entry("word", steps({texts({"a"})})), entry("uneven", steps({ints({1}), ints({1, 2})})),
       entry("gap", steps({ints({1}), ""})), entry("empty", ""),
       entry("twice", steps({ints({1})}))});
  const std::string two = sequence_example({entry("id", ints({2})), entry("twice", ints({1}))},
                                           {entry("frame", steps({floats({5, 6})}))});
  const InferredFeatures inferred = infer_features(records_of({one, two}));
  EXPECT_EQ(inferred.notes,
            "inferred from the first 2 records: {frame: f32[?, 2], id: i64[], token: i64[?], "
            "twice: i64[]}; left out: empty (always empty), gap (steps of different sizes), twice "
            "(a feature list of the same name), uneven (steps of different sizes), word (texts by "
            "steps)");
}

TEST(InferFeaturesTest, TheLastOfTwoEntriesOfOneNameCounts) {
  EXPECT_EQ(notes({example({entry("x", texts({"a"})), entry("x", ints({1, 2}))})}),
            "inferred from the first 1 record: {x: i64[2]}");
}

TEST(InferFeaturesTest, ADamagedRecordAmongThemIsPassedOver) {
  FirstRecords first = records_of({example({entry("x", ints({1}))}), "no example at all"});
  first.records.push_back("damaged");
  EXPECT_EQ(infer_features(first).notes, "inferred from 1 of the first 3 records: {x: i64[]}");
}

TEST(InferFeaturesTest, WithoutExamplesTheRemedyIsRawRecords) {
  const auto refuses = [](const FirstRecords& first, const std::string& why) {
    EXPECT_THAT([&] { (void)infer_features(first); },
                ThrowsMessage<ConfigError>(
                    AllOf(HasSubstr(why), HasSubstr("a.tfrecord"), HasSubstr("raw records"))));
  };
  refuses(records_of({}), "none to look at");
  refuses(records_of({"no example at all", ""}), "of the first 2 records none can be read");
  FirstRecords damaged = records_of({});
  damaged.records.emplace_back("damaged, and no record");
  refuses(damaged, "the checksum of its length is wrong");
  refuses(records_of({example({entry("x", texts({"a", "b"}))})}), "x (2 texts in one record)");
}

TEST(InferFeaturesTest, ManyThatAreLeftOutAreCounted) {
  std::vector<std::string> entries{entry("x", ints({1}))};
  for (int i = 0; i < 30; ++i) entries.push_back(entry(std::string("tags") + char('A' + i), ""));
  EXPECT_THAT(notes({example(entries)}), HasSubstr("tagsT (always empty) and 10 more"));
}

}  // namespace
}  // namespace penstock
