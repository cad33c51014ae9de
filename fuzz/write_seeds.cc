// Writes the generated seeds: write_seeds FOLDER makes FOLDER/image and so on, one for each target
// that has some.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "fuzz/audio_seeds.h"
#include "fuzz/litdata_seeds.h"
#include "fuzz/mds_seeds.h"
#include "fuzz/npy_seeds.h"
#include "fuzz/rows_seeds.h"
#include "fuzz/tar_seeds.h"
#include "fuzz/tfrecord_seeds.h"

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  penstock::fuzz::Seeds seeds = penstock::fuzz::image_seeds();
  std::ranges::move(penstock::fuzz::audio_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::tfrecord_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::tar_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::npy_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::rows_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::mds_seeds(), std::back_inserter(seeds));
  std::ranges::move(penstock::fuzz::litdata_seeds(), std::back_inserter(seeds));
  for (const auto& [target, name, file] : seeds) {
    const std::filesystem::path folder = std::filesystem::path(words[1]) / target;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
  }
  return 0;
}
