#pragma once
// Small files of NumPy for their fuzz target to start from.

#include <string>

#include "fuzz/image_seeds.h"
#include "record/zip_archives_for_tests.h"

namespace penstock::fuzz {

inline Seeds npy_seeds() {
  using testing::npy;
  using testing::zip;
  using testing::zip_part;
  Seeds seeds;
  const auto add = [&seeds](const std::string& name, const std::string& file) {
    seeds.push_back({"npy", name, Values(file.begin(), file.end())});
  };
  const std::string values = "\x01\x02\x03\x04\x05\x06\x07\x08 abcdefgh 1234567";
  const std::string floats = npy("<f4", "(3, 2)", values.substr(0, 24));
  const std::string wide = npy(">i2", "(3, 1, 4)", values.substr(0, 24), "False", 2);
  const std::string bytes = npy("|S8", "(3,)", values.substr(0, 24));
  const std::string text = npy("<U1", "(3,)", std::string("a\0\0\0\xAC\x20\0\0\0\xF6\x01\0", 12));
  const std::string flags = npy("|b1", "(3,)", "\x01\x02\x03", "True", 3);
  add("floats", floats);
  add("wide", wide);
  add("bytes", bytes);
  add("text", text);
  add("flags", flags);
  for (const bool zip64 : {false, true})
    add(zip64 ? "npz64" : "npz",
        zip({zip_part("x.npy", floats), zip_part("t.npy", text, true), zip_part("d/", "")}, zip64,
            "comment"));
  add("npz_packed", zip({zip_part("x.npy", wide, true), zip_part("b.npy", bytes, true)}));
  return seeds;
}

}  // namespace penstock::fuzz
