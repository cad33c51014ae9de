#pragma once
// Indexes of LitData, nested values, and programs that build chunks.
#include <string>

#include "fuzz/image_seeds.h"
#include "record/litdata_for_tests.h"

namespace penstock::fuzz {

inline Seeds litdata_seeds() {
  Seeds seeds;
  const auto add = [&seeds](const std::string& name, int mode, const std::string& input) {
    seeds.push_back({"litdata", name, file_of(std::string{static_cast<char>(mode), '\7'} + input)});
  };
  const Json spec = for_tests::litdata_dict(
      {{"a", for_tests::litdata_leaf()},
       {"b", for_tests::litdata_tuple({for_tests::litdata_leaf(), for_tests::litdata_leaf()})}});
  const Json index = for_tests::litdata_index(
      spec, {"int", "numpy", "no_header_tensor:18"},
      {for_tests::litdata_entry("a.bin", 100, 2), for_tests::litdata_entry("b/c.bin", 100, 2)});
  add("index", 0, index.dump());
  const std::string item = for_tests::litdata_item(
      {for_tests::litdata_array(5, {1, 1}, "ab"), "bytes", "12345678", "text", "ab",
       for_tests::litdata_tensor(13, {1}, "ab"), "\1", "", "[1, 2]"});
  add("chunk", 1, for_tests::litdata_chunk({item, item}));
  add("tokens", 3, for_tests::litdata_chunk({"abcdef", "ghij", "kl"}));
  const std::string word = for_tests::little_bytes(1, 4) + "k";
  const std::string one = for_tests::little_bytes(1, 4);
  add("dict", 2, "\5" + one + word + "\1" + one + word);
  add("dicts", 2, "\6" + one + one + word + "\x12" + for_tests::little_bytes(7, 8));
  add("reals", 2, "\3" + one + for_tests::little_bytes(0x4004'0000'0000'0000U, 8));
  add("compressed", 4, "\2\1\3");
  add("built", 5, "\3\1\2\3");
  for (const char* change : {"\1\2\3\x61\2\x44\x7f", "\1\2\3\x61\1\x22\x7f", "\1\2\3\x61\1\1\x7f"})
    add(fmt::format("damaged_{}", seeds.size()), 5, std::string("\3") + change);
  return seeds;
}

}  // namespace penstock::fuzz
