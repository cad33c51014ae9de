#pragma once
// How `from_generator` turns a factory of typed generators into a GeneratorFn.

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/detail/function.h>
#include <penstock/generator.h>

namespace penstock::detail {

/// How the element of a generator is stored in columns.
template <typename T>
struct Element {
  static constexpr bool kSample = std::is_convertible_v<T, Sample>;
  static ElementSpec spec() {
    if constexpr (kSample) {
      return ElementSpec::unknown();
    } else if constexpr (Values<T>::kTuple) {
      std::vector<ElementSpec> parts;
      for (const Dtype dtype : Values<T>::dtypes()) parts.push_back(ElementSpec::single(dtype));
      return ElementSpec::tuple(parts);
    } else {
      return ElementSpec::single(kDtypeOf<T>);
    }
  }
  static void store(std::span<std::byte* const> columns, std::size_t row, const T& value) {
    Values<T>::store(columns, row, value);
  }
};
template <typename T>
  requires requires { T::fields(); }
struct Element<T> {
  static constexpr bool kSample = false;
  static ElementSpec spec() {
    std::vector<FieldSpec> list;
    std::apply([&](const auto&... each) { (list.push_back(one(each)), ...); }, T::fields());
    return ElementSpec::dict(std::move(list));
  }
  static void store(std::span<std::byte* const> columns, std::size_t row, const T& value) {
    // The columns of a dict are in the order of its sorted keys.
    static const std::vector<std::size_t> order = columns_of_fields();
    std::size_t i = 0;
    std::apply(
        [&](const auto&... each) {
          ((store_one(columns[order[i++]], row, value.*each.member)), ...);
        },
        T::fields());
  }

 private:
  template <typename M>
  static FieldSpec one(const Field<T, M>& each) {
    return {std::string(each.name), kDtypeOf<M>, {}};
  }
  template <typename M>
  static void store_one(std::byte* column, std::size_t row, const M& value) {
    reinterpret_cast<M*>(column)[row] = value;
  }
  static std::vector<std::size_t> columns_of_fields() {
    std::vector<std::size_t> order;
    const ElementSpec dict = spec();
    std::apply([&](const auto&... each) { (order.push_back(dict.find(each.name).value()), ...); },
               T::fields());
    return order;
  }
};

template <typename G>
inline constexpr bool kHasCursor = requires(G generator, const std::string& text) {
  { generator.save() } -> std::convertible_to<std::string>;
  generator.restore(text);
};

template <typename G>
class TypedGeneratorRun final : public GeneratorRun {
 public:
  using Optional = std::invoke_result_t<G&>;
  using T = typename Optional::value_type;
  explicit TypedGeneratorRun(G generator) : generator_(std::move(generator)) {}

  void pull(Pull& pull) override {
    for (; pull.made < pull.rows; ++pull.made) {
      if (!pull.wanted(pull.made)) return;
      Optional element = generator_();
      if (!element) {
        pull.ended = true;
        return;
      }
      if constexpr (Element<T>::kSample) {
        pull.put(pull.made, Sample(std::move(*element)));
      } else {
        Element<T>::store(pull.columns, pull.made, *element);
      }
    }
  }
  std::string save() override {
    if constexpr (kHasCursor<G>) return generator_.save();
    return {};
  }
  void restore([[maybe_unused]] const std::string& cursor) override {
    if constexpr (kHasCursor<G>) generator_.restore(cursor);
  }

 private:
  G generator_;
};

template <typename F>
auto start_generator(F& factory, [[maybe_unused]] GeneratorStart start) {
  if constexpr (std::is_invocable_v<F&, GeneratorStart>) {
    return factory(start);
  } else {
    return factory();
  }
}

template <typename F>
GeneratorFn make_generator_fn(F factory) {
  using G = decltype(start_generator(factory, {}));
  static_assert(std::is_invocable_v<G&>,
                "from_generator takes a function that makes generators, each a callable that "
                "returns a std::optional element; a single generator could run only once");
  using Run = TypedGeneratorRun<G>;
  GeneratorFn erased;
  erased.spec = Element<typename Run::T>::spec();
  erased.has_cursor = kHasCursor<G>;
  erased.open = [factory = std::move(factory)](GeneratorStart start) mutable {
    return std::make_unique<Run>(start_generator(factory, start));
  };
  return erased;
}

}  // namespace penstock::detail
