#pragma once
// User functions in the forms that `map` and `from_index` take, behind one type each:
//   [](std::int64_t x) { return x * 2 + 1; }          typed: a loop over columns, compiled here
//   [](const Sample& s) { return Sample(...); }        one sample to one sample
//   [](const Block& in, Block& out) { ... }            a block at a time
// Each of the first two may take an `Rng&` as its last parameter: the generator keyed for its
// sample. Functions are called from several threads at once, so they must be callable as const.

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/block.h>

namespace penstock {

/// Gives the generator of a row of the block at hand.
using RowRng = std::function<Rng(std::size_t row)>;

/// A typed function as a loop over columns.
struct ColumnFn {
  struct Call {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::size_t rows = 0;
    std::size_t row_values = 1;
    const RowRng* rng = nullptr;
    std::size_t failed_row = 0;  // set when the function threw
  };
  std::vector<Dtype> inputs;
  std::vector<Dtype> outputs;
  bool tuple = false;
  bool random = false;
  std::function<void(Call&)> run;
  /// "(i64, f32) -> (i64)"
  [[nodiscard]] std::string signature() const;
};

/// A function of whole samples. Tensors it is given are valid during the call; `kept()` keeps one.
struct SampleFn {
  bool random = false;
  std::function<Sample(const Sample&, Rng&)> run;
};

/// A function of blocks. Needs a declared spec; dense fields only.
struct BlockFn {
  std::function<void(const Block& in, Block& out)> run;
};

/// A function of the index of a sample.
struct IndexFn {
  ElementSpec spec;  // unknown when it returns a Sample
  std::function<Sample(std::uint64_t)> run;
};

namespace detail {

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

/// Calls `fn` for all values of all rows; notes the row where it throws.
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

}  // namespace detail
}  // namespace penstock
