#pragma once
// Networks for pictures of shape [rows, 3, height, width], ready to train.

#include <penstock/train/layers.h>
#include <penstock/train/network.h>

#include <string>
#include <vector>

namespace penstock::train {

struct PictureSize {
  std::int64_t height = 64;
  std::int64_t width = 64;
};

/// One layer from pixels to classes.
Network linear_model(std::int64_t classes, const PictureSize& size);
/// Three convolutions and two layers; for small pictures.
Network small_cnn(std::int64_t classes, const PictureSize& size);
/// The residual network of 18 layers (He et al., 2015). Batch norm is ours.
Network resnet18(std::int64_t classes);

/// By name: "linear", "cnn" or "resnet18". Throws ConfigError for another.
Network model_named(const std::string& name, std::int64_t classes, const PictureSize& size);

}  // namespace penstock::train
