#pragma once
// Networks for images of shape [rows, 3, height, width], ready to train.

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
/// Three convolutions and two layers; for small images.
Network small_cnn(std::int64_t classes, const PictureSize& size);
/// The residual network of 18 layers (He et al., 2015), with penstock's batch norm.
Network resnet18(std::int64_t classes);

/// By name: "linear", "cnn" or "resnet18". Throws ConfigError for any other name.
Network model_named(const std::string& name, std::int64_t classes, const PictureSize& size);

}  // namespace penstock::train
