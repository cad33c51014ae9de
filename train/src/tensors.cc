#include <penstock/train/tensors.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <penstock/error.h>

namespace penstock::train {
namespace {

std::optional<torch::Dtype> torch_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return torch::kBool;
    case Dtype::u8:
      return torch::kUInt8;
    case Dtype::u16:
      return torch::kUInt16;
    case Dtype::u32:
      return torch::kUInt32;
    case Dtype::u64:
      return torch::kUInt64;
    case Dtype::i8:
      return torch::kInt8;
    case Dtype::i16:
      return torch::kInt16;
    case Dtype::i32:
      return torch::kInt32;
    case Dtype::i64:
      return torch::kInt64;
    case Dtype::f16:
      return torch::kFloat16;
    case Dtype::bf16:
      return torch::kBFloat16;
    case Dtype::f32:
      return torch::kFloat32;
    case Dtype::f64:
      return torch::kFloat64;
    case Dtype::bytes:
    case Dtype::string:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

torch::Tensor tensor_of(const Batch& batch, std::string_view path, const torch::Device& device) {
  const Tensor field = batch[path];
  const auto dtype = torch_dtype(field.dtype());
  if (!dtype)
    throw ConfigError(fmt::format("field \"{}\" is {}, which torch tensors do not support", path,
                                  dtype_name(field.dtype())),
                      {}, "decode it in a map, or leave it out of the model");
  // The batch has no other readers by now, so a model that writes to its input does no harm.
  auto* const data = const_cast<std::byte*>(field.raw().data());
  const auto options = torch::TensorOptions().dtype(*dtype);
  const torch::Tensor view =
      field.raw().empty() ? torch::empty(field.shape(), options)
                          : torch::from_blob(data, field.shape(), [batch](void*) {}, options);
  return device.is_cpu() ? view : view.to(device);
}

torch::Tensor padding_mask(const Batch& batch, torch::Dtype dtype, const torch::Device& device) {
  if (batch.valid_count() == batch.rows()) return {};
  const auto valid = batch.valid();
  const auto mask = torch::from_blob(const_cast<std::uint8_t*>(valid.data()),
                                     {static_cast<std::int64_t>(valid.size())}, torch::kUInt8);
  return mask.to(dtype).to(device);
}

torch::Device torch_device(const std::string& device) {
  if (device.starts_with("cpu")) return torch::kCPU;
  const torch::Device asked(device);
  const std::size_t present = torch::cuda::is_available() ? torch::cuda::device_count() : 0;
  if (static_cast<std::size_t>(asked.index()) >= present)
    throw ConfigError(fmt::format("{}: this machine has {} GPUs that torch {} can use", device,
                                  present, TORCH_VERSION),
                      {},
                      present == 0 ? "train on cpu:0, or install the torch build for your GPU"
                                   : fmt::format("use cuda:0 to cuda:{}", present - 1));
  return asked;
}

std::string tensor_text(const torch::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  return fmt::format("{}[{}]", c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes(), ", "));
}

}  // namespace penstock::train
