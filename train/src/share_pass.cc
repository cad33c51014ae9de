// tested in train/tests/model_test.cc
#include "share_pass.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <penstock/train/tensors.h>

#include "labels.h"

namespace penstock::train {
namespace {

/// While it exists, uses bf16 in this thread for operations that allow it.
class Autocast {
 public:
  Autocast(bool on, torch::DeviceType device) : device_(device), on_(on) {
    if (!on) return;
    before_ = at::autocast::is_autocast_enabled(device);
    dtype_ = at::autocast::get_autocast_dtype(device);
    at::autocast::set_autocast_enabled(device, true);
    at::autocast::set_autocast_dtype(device, torch::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, before_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::DeviceType device_;
  bool on_;
  bool before_ = false;
  torch::ScalarType dtype_ = torch::kBFloat16;
};

/// A row of zeros for each field: the input of an empty share if all replicas must run.
torch::Tensor row_of_zeros(const Batch& share, const std::string& path,
                           const torch::Device& device) {
  const torch::Tensor none = tensor_of(share, path);
  std::vector<std::int64_t> shape = none.sizes().vec();
  shape[0] = 1;
  return torch::zeros(shape, none.options().device(device));
}

std::optional<std::string> first_there(const ElementSpec& spec,
                                       std::initializer_list<const char*> names) {
  for (const char* const name : names)
    if (spec.find(name)) return name;
  return std::nullopt;
}

Where where_of(const Batch& share, std::optional<std::uint64_t> row = {}) {
  Where where;
  where.epoch = share.epoch();
  where.step = share.step();
  if (row && *row < share.sample_id().size()) where.sample = SampleKey{0, share.sample_id()[*row]};
  return where;
}

}  // namespace

FieldNames field_names(const ModelOptions& options, const ElementSpec& spec, bool needs_target) {
  std::vector<std::string> all;
  for (const FieldSpec& field : spec.fields) all.push_back(field.path);
  FieldNames names{options.inputs, options.target, options.sample_weight};
  if (names.inputs.empty()) {
    auto named = first_there(spec, {"image", "x", "input", "features"});
    if (!named && (all.size() == 1 || all.size() == 2)) named = all.front();
    if (named) names.inputs = {*named};
  }
  if (names.target.empty() && needs_target) {
    auto named = first_there(spec, {"label", "y", "target"});
    if (!named && all.size() == 2) named = all.back();
    names.target = named.value_or("");
    if (!named) names.inputs.clear();
  }
  const auto missing = [&](const std::string& name) { return !spec.find(name); };
  const bool unknown = names.inputs.empty() || std::ranges::any_of(names.inputs, missing) ||
                       (!names.target.empty() && missing(names.target)) ||
                       (!names.sample_weight.empty() && missing(names.sample_weight));
  if (unknown)
    throw ConfigError(
        fmt::format("model: which fields are inputs and target? Named are [{}] and \"{}\"{}; the "
                    "dataset has [{}]",
                    fmt::join(options.inputs, ", "), options.target,
                    options.sample_weight.empty()
                        ? ""
                        : fmt::format(", weight \"{}\"", options.sample_weight),
                    fmt::join(all, ", ")),
        {}, "name them in ModelOptions: {.inputs = {\"x\"}, .target = \"y\"}");
  return names;
}

torch::Tensor SharePass::forward(const Replica& replica, const Batch& share,
                                 const Inputs& inputs) const {
  try {
    const Autocast cast(compiled.bf16, inputs.front().device().type());
    return copies[replica].forward(inputs);
  } catch (const c10::Error& error) {
    std::vector<std::string> shapes;
    for (const torch::Tensor& input : inputs) shapes.push_back(tensor_text(input));
    const std::string text = error.what_without_backtrace();
    throw ConfigError(
        fmt::format("model: forward failed on replica {} with input {}: {}", replica.id(),
                    fmt::join(shapes, ", "), text.substr(0, text.find('\n'))),
        where_of(share), "do the shapes and types of the layers fit the batch?");
  }
}

SharePass::Result SharePass::run(Replica& replica, const Batch& share, bool scores) const {
  const torch::Device& device = copies.device(replica.local_id());
  const bool no_rows = share.rows() == 0;
  const FieldNames names = field_names(model, share.spec(), scores);
  const auto field = [&](const std::string& path) {
    return no_rows ? row_of_zeros(share, path, device) : tensor_of(share, path, device);
  };
  Inputs inputs;
  for (const std::string& path : names.inputs) inputs.push_back(field(path));
  const ShareScope scope(replica, share,
                         {iteration, copies.group(), copies.synchronized(), no_rows});
  Result result;
  const torch::Tensor output = forward(replica, share, inputs);
  if (!scores) {
    result.output = output;
    return result;
  }
  const torch::Tensor target = field(names.target);
  torch::Tensor rows;
  try {
    rows = compiled.loss.per_sample(compiled.bf16 ? output.to(torch::kFloat32) : output, target);
  } catch (const LabelError& error) {
    throw SampleError(error.what(), where_of(share, static_cast<std::uint64_t>(error.row())),
                      "enlarge the model's last layer, or correct the labels");
  }
  if (rows.dim() != 1 || rows.size(0) != inputs.front().size(0))
    throw ConfigError(fmt::format("loss {}: gives {} for {} rows", compiled.loss.name,
                                  tensor_text(rows), inputs.front().size(0)),
                      where_of(share), "a loss must return one value per row");
  if (!names.sample_weight.empty())
    rows = rows * field(names.sample_weight).to(rows.scalar_type()).view({-1});
  const torch::Tensor mask = scope.mask(torch::kUInt8, rows.device());
  if (mask.defined()) rows = torch::where(mask.to(torch::kBool), rows, torch::zeros_like(rows));
  const torch::Tensor sum = rows.sum();
  if (trains) sum.backward(torch::ones_like(sum) / divisor);

  const torch::NoGradGuard no_grad;
  result.sums.loss = rows.detach().to(torch::kFloat64).sum().item<double>();
  result.sums.samples = no_rows ? 0 : static_cast<double>(share.valid_count());
  if (!std::isfinite(result.sums.loss) && !no_rows) {
    const torch::Tensor bad = torch::logical_not(torch::isfinite(rows)).cpu();
    for (std::size_t row = 0; row < share.rows(); ++row)
      if (bad[static_cast<std::int64_t>(row)].item<bool>())
        result.not_numbers.push_back(share.sample_id()[row]);
  }
  if (!no_rows)
    for (const Metric& metric : compiled.metrics)
      result.sums.metrics.push_back(metric_sums(metric, output, target, mask));
  return result;
}

}  // namespace penstock::train
