#pragma once
// How `map`, `from_index`, predicates and `flat_map` turn a user's function into one type.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/function.h>

namespace penstock::detail {

template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  using Result = std::decay_t<R>;
  using Args = std::tuple<std::decay_t<A>...>;
  static constexpr bool kRandom = (std::is_same_v<A, Rng&> || ...);
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const noexcept> : Signature<R (*)(A...)> {};
template <typename R, typename... A>
struct Signature<R (*)(A...) noexcept> : Signature<R (*)(A...)> {};

template <typename T>
struct Values {  // One result
  static constexpr bool kTuple = false;
  static std::vector<Dtype> dtypes() { return {kDtypeOf<T>}; }
  static void store(std::span<std::byte* const> out, std::size_t i, const T& value) {
    reinterpret_cast<T*>(out[0])[i] = value;
  }
};
template <typename... T>
struct Values<std::tuple<T...>> {
  static constexpr bool kTuple = true;
  static std::vector<Dtype> dtypes() { return {kDtypeOf<T>...}; }
  static void store(std::span<std::byte* const> out, std::size_t i, const std::tuple<T...>& value) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((reinterpret_cast<T*>(out[I])[i] = std::get<I>(value)), ...);
    }(std::index_sequence_for<T...>{});
  }
};
template <typename A, typename B>
struct Values<std::pair<A, B>> : Values<std::tuple<A, B>> {};

/// Calls `fn` for all values of all rows; records the row for which it throws.
template <typename Args, typename Result, bool Random, typename F, std::size_t... I>
void column_loop(const F& fn, ColumnFn::Call& call, std::index_sequence<I...>) {
  const std::tuple<const std::tuple_element_t<I, Args>*...> in{
      reinterpret_cast<const std::tuple_element_t<I, Args>*>(call.inputs[I])...};
  std::size_t i = 0;
  try {
    if constexpr (Random) {
      for (std::size_t row = 0; row < call.rows; ++row) {
        Rng rng = (*call.rng)(row);
        for (const std::size_t end = i + call.row_values; i < end; ++i)
          Values<Result>::store(call.outputs, i, fn(std::get<I>(in)[i]..., rng));
      }
    } else {
      const std::size_t end = call.rows * call.row_values;
      if constexpr (!Values<Result>::kTuple) {
        auto* const out = reinterpret_cast<Result*>(call.outputs[0]);
        for (; i < end; ++i) out[i] = fn(std::get<I>(in)[i]...);
      } else {
        for (; i < end; ++i) Values<Result>::store(call.outputs, i, fn(std::get<I>(in)[i]...));
      }
    }
  } catch (...) {
    call.failed_row = call.row_values == 0 ? 0 : i / call.row_values;
    throw;
  }
}

template <typename F>
ColumnFn make_column_fn(F fn) {
  using Sig = Signature<F>;
  using Args = typename Sig::Args;
  using Result = typename Sig::Result;
  constexpr std::size_t kInputs = std::tuple_size_v<Args> - (Sig::kRandom ? 1 : 0);
  static_assert(kInputs > 0, "a map function needs at least one value to work on");
  using Inputs = std::make_index_sequence<kInputs>;
  ColumnFn erased;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    erased.inputs = {kDtypeOf<std::tuple_element_t<I, Args>>...};
  }(Inputs{});
  erased.outputs = Values<Result>::dtypes();
  erased.tuple = Values<Result>::kTuple;
  erased.random = Sig::kRandom;
  erased.run = [fn = std::move(fn)](ColumnFn::Call& call) {
    column_loop<Args, Result, Sig::kRandom>(fn, call, Inputs{});
  };
  return erased;
}

template <typename F>
inline constexpr bool kTakesSample = std::is_invocable_r_v<Sample, const F&, const Sample&> ||
                                     std::is_invocable_r_v<Sample, const F&, const Sample&, Rng&>;
template <typename F>
inline constexpr bool kTakesBlock = std::is_invocable_v<const F&, const Block&, Block&>;

template <typename F>
SampleFn make_sample_fn(F fn) {
  constexpr bool kRandom = std::is_invocable_r_v<Sample, const F&, const Sample&, Rng&>;
  SampleFn erased;
  erased.random = kRandom;
  erased.run = [fn = std::move(fn)]([[maybe_unused]] const Sample& in, [[maybe_unused]] Rng& rng) {
    if constexpr (kRandom) {
      return Sample(fn(in, rng));
    } else {
      return Sample(fn(in));
    }
  };
  return erased;
}

template <typename F>
IndexFn make_index_fn(F fn) {
  using Result = std::decay_t<std::invoke_result_t<const F&, std::uint64_t>>;
  IndexFn erased;
  if constexpr (std::is_convertible_v<Result, Sample>) {
    erased.spec = ElementSpec::unknown();
    erased.run = [fn = std::move(fn)](std::uint64_t index) { return Sample(fn(index)); };
  } else {
    erased.spec = ElementSpec::single(kDtypeOf<Result>);
    erased.run = [fn = std::move(fn)](std::uint64_t index) {
      return Sample(Tensor::scalar<Result>(fn(index)));
    };
  }
  return erased;
}

/// `bool(...)` as a function of columns or samples.
template <typename F>
inline constexpr bool kIsSamplePredicate =
    std::is_invocable_r_v<bool, const F&, const Sample&> ||
    std::is_invocable_r_v<bool, const F&, const Sample&, Rng&>;
template <typename F>
SampleFn make_sample_predicate(F fn) {
  SampleFn erased;
  erased.random = std::is_invocable_r_v<bool, const F&, const Sample&, Rng&>;
  erased.run = [fn = std::move(fn)](const Sample& in, [[maybe_unused]] Rng& rng) {
    if constexpr (std::is_invocable_r_v<bool, const F&, const Sample&, Rng&>) {
      return Sample(Tensor::scalar<bool>(fn(in, rng)));
    } else {
      return Sample(Tensor::scalar<bool>(fn(in)));
    }
  };
  return erased;
}

/// `D(const Sample&)` or `D(number)` as a function of a sample.
template <typename D, typename F>
std::function<D(const Sample&)> make_expand_fn(F fn) {
  if constexpr (std::is_invocable_r_v<D, F&, const Sample&>) {
    return fn;
  } else {
    using T = std::tuple_element_t<0, typename Signature<F>::Args>;
    return [fn = std::move(fn)](const Sample& in) { return fn(in.tensor().item<T>()); };
  }
}

}  // namespace penstock::detail
