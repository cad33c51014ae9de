#pragma once
// Indexes of MDS shards, and programs that build shards.
#include <string>

#include "fuzz/image_seeds.h"
#include "record/mds_for_tests.h"

namespace penstock::fuzz {

inline Seeds mds_seeds() {
  Seeds seeds;
  const std::vector<for_tests::MdsTestColumn> columns = {
      {"a", "ndarray"}, {"b", "int", 8}, {"c", "ndarray:int16:2,3", 12}, {"d", "str"}};
  const Json index = {{"version", 2},
                      {"shards", Json::array({for_tests::mds_entry(columns, "a.mds", 100, 2),
                                              for_tests::mds_entry(columns, "b/c.mds", 100, 2)})}};
  const std::string head("\0\7", 2);
  seeds.push_back({"mds", "index", file_of(head + index.dump())});
  const std::string sample = for_tests::mds_sample(
      columns, {"\x10" + for_tests::mds_array({1}, "ab"), "12345678", "abcdefabcdef", "text"});
  seeds.push_back(
      {"mds", "shard", file_of("\1\7" + for_tests::mds_shard(columns, {sample, sample}))});
  seeds.push_back({"mds", "built", file_of("\2\7\3\1\2\3")});
  for (const char* change : {"\1\2\3\x61\2\x44\x7f", "\1\2\3\x61\1\x22\x7f", "\1\2\3\x61\1\1\x7f"})
    seeds.push_back(
        {"mds", fmt::format("damaged_{}", seeds.size()), file_of(std::string("\2\7\3") + change)});
  return seeds;
}

}  // namespace penstock::fuzz
