// Trains every case of same_weights.h as one process of several, and writes what came out for
// workers.py to compare. penstock_workers FILE DEVICE...
#include <fmt/format.h>

#include <fstream>

#include "base/json.h"
#include "same_weights.h"

namespace {

namespace pt = penstock::train;
using penstock::Json;

Json to_json(const torch::Tensor& weights) {
  const torch::Tensor here = weights.cpu();
  return std::vector<double>(here.const_data_ptr<double>(),
                             here.const_data_ptr<double>() + here.numel());
}

Json of(const pt::Case& with, penstock::Strategy& strategy) {
  const pt::Trained fit = pt::fitted(with, strategy);
  Json made = {{"limit", with.limit},
               {"samples", fit.scores.samples},
               {"iterations", fit.iterations},
               {"fit", to_json(fit.weights)}};
  if (pt::can_loop(with)) made["loop"] = to_json(pt::looped(with, strategy).weights);
  // What evaluate says of one and the same network.
  pt::Model model(pt::small_net(false, false, with.dtype), {.strategy = &strategy});
  model.compile(pt::compiled(with));
  const pt::Scores scores = model.evaluate(pt::data_of(with));
  made["evaluate"] = {scores.loss, scores.metrics.at(0).second};
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} FILE DEVICE...\n", argv[0]);
    return 2;
  }
  try {
    pt::MultiWorkerMirroredStrategy strategy(std::vector<std::string>(argv + 2, argv + argc));
    Json all;
    for (const pt::Case& with : pt::cases()) all[with.name] = of(with, strategy);
    if (strategy.group().rank() == 0) std::ofstream(argv[1]) << all.dump() << "\n";
  } catch (const std::exception& error) {
    fmt::print(stderr, "penstock_workers: {}\n", error.what());
    return 1;
  }
  return 0;
}
