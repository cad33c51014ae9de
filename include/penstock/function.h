#pragma once
// User functions in the forms that `map` and `from_index` accept, each behind one type:
//   [](std::int64_t x) { return x * 2 + 1; }          typed: a loop over columns, compiled here
//   [](const Sample& s) { return Sample(...); }        one sample to one sample
//   [](const Block& in, Block& out) { ... }            a block at a time
// Predicates have the first two forms and return bool. Generators are at the end of this file.
// The first two forms may take an `Rng&` as their last parameter: a generator keyed by the sample.
// Functions are called from several threads at the same time, so they must be callable as const.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <penstock/block.h>

namespace penstock {

/// Returns the generator for a row of the current block.
using RowRng = std::function<Rng(std::size_t row)>;

/// A typed function as a loop over columns.
struct ColumnFn {
  struct Call {
    std::span<const std::byte* const> inputs;
    std::span<std::byte* const> outputs;
    std::size_t rows = 0;
    std::size_t row_values = 1;
    const RowRng* rng = nullptr;
    std::size_t failed_row = 0;  // set if the function threw
  };
  std::vector<Dtype> inputs;
  std::vector<Dtype> outputs;
  bool tuple = false;
  bool random = false;
  std::function<void(Call&)> run;
  /// "(i64, f32) -> (i64)"
  [[nodiscard]] std::string signature() const;
};

/// A function of whole samples. Its argument's tensors are valid during the call; `kept()` returns
/// one that stays valid.
struct SampleFn {
  bool random = false;
  std::function<Sample(const Sample&, Rng&)> run;
};

/// A function of blocks. Needs a declared spec; dense fields only.
struct BlockFn {
  std::function<void(const Block& in, Block& out)> run;
};

/// A member of a struct that describes samples: `static constexpr auto fields() { return
/// std::tuple(field("x", &Point::x), field("label", &Point::label)); }` makes Point a dict.
template <typename C, typename M>
struct Field {
  std::string_view name;
  M C::* member;
};
template <typename C, typename M>
constexpr Field<C, M> field(std::string_view name, M C::* member) {
  return {name, member};
}

/// Which traversal of the data a generator is created for.
struct GeneratorStart {
  std::uint64_t epoch = 0;
  std::uint64_t round = 0;  // of repeats, combined
};

/// One run of a generator. Used by one thread at a time.
class GeneratorRun {
 public:
  /// Where elements go: to `columns` if the generator's type determines their spec, else to `put`.
  struct Pull {
    std::span<std::byte* const> columns;
    std::size_t rows = 0;  // requested
    std::size_t made = 0;  // so far
    bool ended = false;
    std::function<bool(std::size_t row)> wanted;  // false once the loader stops
    std::function<void(std::size_t row, Sample sample)> put;
  };
  virtual ~GeneratorRun() = default;
  virtual void pull(Pull& pull) = 0;
  [[nodiscard]] virtual std::string save() = 0;
  virtual void restore(const std::string& cursor) = 0;
};

/// Creates the runs of a generator.
struct GeneratorFn {
  ElementSpec spec;         // unknown if it yields Samples
  bool has_cursor = false;  // its runs save and restore
  std::function<std::unique_ptr<GeneratorRun>(GeneratorStart)> open;
};

/// A function of the index of a sample.
struct IndexFn {
  ElementSpec spec;  // unknown if it returns a Sample
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

}  // namespace detail
}  // namespace penstock
