// tested in train/tests/network_test.cc
#include "named_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <penstock/error.h>
#include <penstock/train/tensors.h>

#include <map>

namespace penstock::train {

NamedTensors named_values(const torch::nn::Module& module) {
  NamedTensors values;
  for (const auto& item : module.named_parameters()) values.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers())
    if (item.value().defined()) values.emplace_back(item.key(), item.value());
  return values;
}

void load_values(const std::string& what, const NamedTensors& values, torch::nn::Module& module) {
  const std::map<std::string, torch::Tensor> given(values.begin(), values.end());
  const NamedTensors wanted = named_values(module);
  std::vector<std::string> missing;
  std::vector<std::string> unlike;
  std::map<std::string, torch::Tensor> unexpected = given;
  for (const auto& [name, value] : wanted) {
    const auto found = given.find(name);
    unexpected.erase(name);
    if (found == given.end()) {
      missing.push_back(name);
    } else if (found->second.sizes() != value.sizes()) {
      unlike.push_back(fmt::format("{} is {} there and {} here", name, tensor_text(found->second),
                                   tensor_text(value)));
    }
  }
  std::vector<std::string> extra;
  for (const auto& [name, value] : unexpected) extra.push_back(name);
  if (!missing.empty() || !unlike.empty() || !extra.empty())
    throw StateError(fmt::format("{} belongs to another model: missing [{}]; unexpected [{}]; of a "
                                 "different shape [{}]",
                                 what, fmt::join(missing, ", "), fmt::join(extra, ", "),
                                 fmt::join(unlike, "; ")),
                     {}, "build the same model as when it was saved");
  const torch::NoGradGuard no_grad;
  for (const auto& [name, value] : wanted) torch::Tensor(value).copy_(given.at(name));
}

std::string values_text(const torch::nn::Module& module) {
  std::string text;
  for (const auto& [name, value] : named_values(module))
    text += fmt::format("{} {}; ", name, tensor_text(value));
  return text;
}

}  // namespace penstock::train
