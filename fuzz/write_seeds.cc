// Writes the generated seeds: write_seeds FOLDER makes FOLDER/image, FOLDER/png, FOLDER/jpeg and
// FOLDER/audio.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "fuzz/audio_seeds.h"

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: write_seeds FOLDER\n";
    return 2;
  }
  penstock::fuzz::Seeds seeds = penstock::fuzz::image_seeds();
  std::ranges::move(penstock::fuzz::audio_seeds(), std::back_inserter(seeds));
  for (const auto& [target, name, file] : seeds) {
    const std::filesystem::path folder = std::filesystem::path(words[1]) / target;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
  }
  return 0;
}
