// Pictures from files to a trained model: read, decode, resize, flip and change brightness, in
// parallel and ahead of training, on two replicas, with checkpoints. Give it a folder with one
// folder of pictures for each class; without one it makes its own.
#include <fmt/format.h>
#include <penstock/train.h>

#include <filesystem>
#include <fstream>

namespace ps = penstock;
namespace pt = penstock::train;

/// Two classes of 40 small pictures: bright ones and dark ones.
void make_pictures(const std::filesystem::path& folder) {
  for (const bool bright : {false, true}) {
    const auto of_class = folder / (bright ? "bright" : "dark");
    std::filesystem::create_directories(of_class);
    for (int i = 0; i < 40; ++i) {
      std::ofstream file(of_class / fmt::format("{:02}.ppm", i), std::ios::binary);
      file << "P6 20 20 255\n";
      for (int pixel = 0; pixel < 20 * 20 * 3; ++pixel)
        file.put(static_cast<char>((bright ? 120 : 30) + (pixel * 7 + i * 13) % 90));
    }
  }
}

int main(int argc, char** argv) {
  const auto scratch =
      std::filesystem::temp_directory_path() / fmt::format("pictures-{}", ::getpid());
  const std::filesystem::path folder = argc > 1 ? argv[1] : scratch / "data";
  if (argc <= 1) make_pictures(folder);

  const auto chain = ps::image::decode()
                         .resize(16, 16)
                         .random_flip()
                         .random_brightness(0.1F)
                         .normalize()
                         .channels_first();
  const auto train =
      ps::Dataset::image_folder(folder.string()).shuffle({.seed = 7}).map(chain).batch(16);
  const auto classes = static_cast<std::int64_t>(train.class_names().size());

  ps::MirroredStrategy strategy({"cpu:0", "cpu:1"});
  pt::Model model(pt::small_cnn(classes, {16, 16}), {.strategy = &strategy});
  model.compile({.optimizer = pt::adam(1e-3), .metrics = {pt::accuracy()}});
  pt::FitOptions options{.epochs = 4};
  options.callbacks = {pt::checkpoints((scratch / "saved").string())};
  const pt::History history = model.fit(train, options);
  const double accuracy = *history.epochs.back().find("accuracy");
  std::filesystem::remove_all(scratch);
  return argc > 1 || accuracy > 0.95 ? 0 : 1;
}
