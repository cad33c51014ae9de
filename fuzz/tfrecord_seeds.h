#pragma once
// Small TFRecord files, Examples and a features.json, for the tfrecord target to start from. The
// first byte says which of them it is.
#include <string>
#include <utility>
#include <vector>

#include "fuzz/image_seeds.h"
#include "record/example_messages_for_tests.h"

namespace penstock::fuzz {

inline Seeds tfrecord_seeds() {
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
  using messages::unpacked_ints;
  Seeds seeds;
  const auto add = [&seeds](const std::string& name, char kind, const std::string& file) {
    Values values{static_cast<std::uint8_t>(kind)};
    values.insert(values.end(), file.begin(), file.end());
    seeds.push_back({"tfrecord", name, std::move(values)});
  };
  const std::string plain =
      example({entry("f", floats({1, 2})), entry("i", ints({1, 300, -1})),
               entry("t", texts({"abc"})), entry("raw", texts({std::string(8, '\x3f')})),
               entry("u8", ints({255})), entry("b", ints({0, 1})), entry("h", floats({0.5F}))});
  const std::string unpacked =
      example({entry("f", unpacked_floats({1, 2})), entry("i", unpacked_ints({1, 300, -1}))});
  const std::string several =
      example({entry("t", texts({"a", "b"})), entry("f", ""), entry("f", floats({3, 4, 5}))}) +
      example({entry("i", ints({}))}) + field(9, "unknown");
  const std::string steps_of = sequence_example(
      {entry("i", ints({7, 8, 9}))}, {entry("s", steps({floats({1, 2}), unpacked_floats({3, 4})})),
                                      entry("n", steps({ints({1}), ints({2})}))});
  add("files", 0, framed(plain) + framed("") + framed(unpacked) + framed(several));
  add("file_cut", 0, framed(plain) + framed(unpacked).substr(0, 20));
  add("example", 1, plain);
  add("example_unpacked", 1, unpacked);
  add("example_several", 1, several);
  add("sequence_example", 1, steps_of);
  add("features", 2, R"({"featuresDict": {"features": {
      "a": {"image": {"shape": {"dimensions": ["28", "-1", "3"]}}}, "b": {"text": {}},
      "c": {"sequence": {"length": "3", "feature": {"classLabel": {"numClasses": "10"}}}},
      "d": {"featuresDict": {"features": {"e": {"tensor": {"shape": {"dimensions": ["-1", "4"]},
            "dtype": "float32", "encoding": "bytes"}}}}}, "f": {"boundingBox": {}},
      "g": {"translation": {"languages": ["de", "en"]}}, "h": {"video": {}}}}})");
  add("features_in_text", 2,
      R"({"content": "{\"features\": {\"a\": {\"audio\": {\"dtype\": \"int64\"}}}}"})");
  return seeds;
}

}  // namespace penstock::fuzz
