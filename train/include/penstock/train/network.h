#pragma once
// Any torch::nn::Module with a forward(Tensor ...), so that the trainer can call and copy it.

#include <torch/torch.h>

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::train {

using Inputs = std::vector<torch::Tensor>;

namespace detail {

template <typename Impl>
std::shared_ptr<Impl> module_of(const std::shared_ptr<Impl>& module) {
  return module;
}
template <typename Impl>
std::shared_ptr<Impl> module_of(const torch::nn::ModuleHolder<Impl>& module) {
  return module.ptr();
}
template <typename Holder>
concept HoldsModule = requires(const Holder& holder) { module_of(holder); };
template <typename Holder>
using ModuleOf = typename decltype(module_of(std::declval<const Holder&>()))::element_type;

[[noreturn]] void throw_inputs(std::size_t given, std::size_t taken);

template <typename Impl>
torch::Tensor call(Impl& module, const Inputs& in) {
  constexpr auto one = requires { torch::Tensor(module.forward(in[0])); };
  constexpr auto two = requires { torch::Tensor(module.forward(in[0], in[1])); };
  constexpr auto three = requires { torch::Tensor(module.forward(in[0], in[1], in[2])); };
  static_assert(one || two || three,
                "the module needs torch::Tensor forward(torch::Tensor x), of 1 to 3 tensors");
  if constexpr (one)
    if (in.size() == 1) return module.forward(in[0]);
  if constexpr (two)
    if (in.size() == 2) return module.forward(in[0], in[1]);
  if constexpr (three)
    if (in.size() == 3) return module.forward(in[0], in[1], in[2]);
  throw_inputs(in.size(), one ? 1 : two ? 2 : 3);
}

}  // namespace detail

class Network {
 public:
  /// A module: `Net()`, `torch::nn::Sequential(...)`, `std::make_shared<NetImpl>()`. Copies for
  /// further replicas are created with its clone(), so it must derive from torch::nn::Cloneable,
  /// like all of torch's own modules; or pass a function that creates one.
  template <typename Holder>
    requires detail::HoldsModule<Holder>
  Network(const Holder& module)  // NOLINT: what a user has is a module
      : module_(detail::module_of(module)), call_(caller<detail::ModuleOf<Holder>>()) {}

  /// A function that creates the module, called once per copy.
  template <typename Make>
    requires(!detail::HoldsModule<Make>) && requires(const Make& m) { detail::module_of(m()); }
  Network(Make make)  // NOLINT
      : module_(detail::module_of(make())),
        call_(caller<detail::ModuleOf<std::invoke_result_t<const Make&>>>()),
        make_([make] {
          return std::static_pointer_cast<torch::nn::Module>(detail::module_of(make()));
        }) {}

  [[nodiscard]] torch::nn::Module& module() const { return *module_; }
  [[nodiscard]] torch::Tensor forward(const Inputs& inputs) const {
    return call_(*module_, inputs);
  }
  /// A copy with the same values on `device`. Throws ConfigError for a module that cannot be
  /// copied.
  [[nodiscard]] Network copy(const torch::Device& device) const;
  /// The module with its own type.
  template <typename Impl>
  [[nodiscard]] Impl& as() const {
    return dynamic_cast<Impl&>(*module_);
  }

 private:
  using Call = std::function<torch::Tensor(torch::nn::Module&, const Inputs&)>;
  template <typename Impl>
  static Call caller() {
    return [](torch::nn::Module& module, const Inputs& inputs) {
      return detail::call(static_cast<Impl&>(module), inputs);
    };
  }

  std::shared_ptr<torch::nn::Module> module_;
  Call call_;
  std::function<std::shared_ptr<torch::nn::Module>()> make_;
};

/// Copies parameters and buffers by name. Throws ConfigError if the modules differ, listing missing
/// and unexpected names.
void copy_values(const torch::nn::Module& from, torch::nn::Module& to);

}  // namespace penstock::train
