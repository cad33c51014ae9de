// Writes the seeds of the image targets: image_seeds FOLDER makes FOLDER/image, FOLDER/png and
// FOLDER/jpeg.
#include "fuzz/image_seeds.h"

#include <filesystem>
#include <fstream>
#include <iostream>

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: image_seeds FOLDER\n";
    return 2;
  }
  for (const auto& [target, name, file] : penstock::fuzz::image_seeds()) {
    const std::filesystem::path folder = std::filesystem::path(words[1]) / target;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(file.data()),
              static_cast<std::streamsize>(file.size()));
  }
  return 0;
}
