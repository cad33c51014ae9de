#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "base/json.h"
#include "op/op.h"
#include "penstock/error.h"
#include "sample/rows.h"
#include "sample/with_type.h"

namespace penstock {
namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Outside the range of To the conversion is undefined in C++; here the result is the nearest
    // value, and 0 for NaN.
    if (std::isnan(value)) return To{};
    if (value <= static_cast<From>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (value >= static_cast<From>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

class Cast final : public Op {
 public:
  Cast(Dtype dtype, std::string path) : dtype_(dtype), path_(std::move(path)) {}
  [[nodiscard]] std::string word() const override { return "cast"; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("cast({}{}{})", dtype_name(dtype_), path_.empty() ? "" : ", ", path_);
  }
  [[nodiscard]] Json arguments() const override {
    return {{"dtype", dtype_name(dtype_)}, {"path", path_}};
  }

  [[nodiscard]] ElementSpec output(const ElementSpec& input) const override {
    if (!input.known) return input;
    ElementSpec spec = input;
    FieldSpec& field = spec.fields[index_in(input)];
    if (is_variable(field.dtype))
      throw ConfigError(fmt::format("cast: field \"{}\" is {}", path_, field.text()), {},
                        "only numbers can be cast");
    field.dtype = dtype_;
    return spec;
  }

  Result<void> run(const BlockView& in, const BlockView& out, const OpContext&) const override {
    const std::size_t index = index_in(*in.spec);
    copy_other_columns(in, out, index);
    const Column& from = in.columns[index];
    const Column& to = out.columns[index];
    const Dtype source = in.spec->fields[index].dtype;
    if (from.dense()) {
      run_values(from.data, source, to.data, in.rows * from.row_bytes / dtype_size(source));
      return {};
    }
    for (std::size_t row = 0; row < in.rows; ++row) {
      const Tensor& tensor = from.tensors[row];
      const std::size_t values = shape_values(tensor.shape());
      auto converted = std::make_shared<std::vector<std::byte>>(
          std::max<std::size_t>(1, values * dtype_size(dtype_)));
      run_values(tensor.raw().data(), source, converted->data(), values);
      const std::span<const std::byte> bytes(converted->data(), values * dtype_size(dtype_));
      to.tensors[row] = Tensor::view(dtype_, tensor.shape(), bytes, std::move(converted));
    }
    return {};
  }

 private:
  [[nodiscard]] std::size_t index_in(const ElementSpec& spec) const {
    return field_index("cast", path_, spec);
  }

  void run_values(const std::byte* from, Dtype source, std::byte* to, std::size_t values) const {
    with_type(source, [&](auto in_type) {
      with_type(dtype_, [&](auto out_type) {
        using In = decltype(in_type);
        using Out = decltype(out_type);
        if constexpr (!std::is_same_v<In, NoType> && !std::is_same_v<Out, NoType>) {
          const auto* const in = reinterpret_cast<const In*>(from);
          auto* const out = reinterpret_cast<Out*>(to);
          for (std::size_t i = 0; i < values; ++i) out[i] = convert<Out>(in[i]);
        }
      });
    });
  }

  Dtype dtype_;
  std::string path_;
};

Dtype parse_dtype(const std::string& name) {
  for (int i = 0; i <= static_cast<int>(Dtype::f64); ++i)
    if (dtype_name(static_cast<Dtype>(i)) == name) return static_cast<Dtype>(i);
  throw ConfigError(fmt::format("cast: \"{}\" is not a numeric dtype", name));
}

}  // namespace

std::shared_ptr<const Op> make_cast(const Json& arguments) {
  return std::make_shared<Cast>(parse_dtype(arguments.value("dtype", std::string())),
                                arguments.value("path", std::string()));
}

OpCall cast(Dtype dtype, std::string path) {
  return OpCall(make_cast({{"dtype", dtype_name(dtype)}, {"path", path}}));
}

}  // namespace penstock
