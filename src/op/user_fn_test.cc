#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "op/op.h"
#include "penstock/detail/function.h"
#include "penstock/error.h"
#include "sample/rows.h"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

template <typename F>
std::shared_ptr<const Op> typed(F fn, std::string name = {}) {
  return make_column_op(detail::make_column_fn(std::move(fn)), std::move(name));
}

template <typename F>
std::shared_ptr<const Op> of_samples(F fn, const MapOptions& options = {}) {
  return make_sample_op(detail::make_sample_fn(std::move(fn)), options);
}

Tensor row_of(const std::vector<std::int64_t>& values) {
  return Tensor::of(values);
}

/// Runs an op on a block of samples; the first sample determines the spec.
class OpRun {
 public:
  OpRun(const std::shared_ptr<const Op>& op, const std::vector<Sample>& samples,
        const RowRng* rng = nullptr)
      : in_spec_(ElementSpec::of(samples.front())),
        out_spec_(op->output(in_spec_)),
        in_(in_spec_, samples.size(), scratch_),
        out_(out_spec_, samples.size(), scratch_),
        done_(fill(op, samples, rng)) {}

  [[nodiscard]] bool ok() const { return done_.ok(); }
  [[nodiscard]] const Failure& failure() const { return done_.failure(); }
  [[nodiscard]] const ElementSpec& spec() const { return out_spec_; }
  [[nodiscard]] const BlockView& out() const { return out_.view(); }
  template <typename T>
  [[nodiscard]] std::span<T> column(std::string_view path = "") const {
    return Block(out_.view()).column<T>(path);
  }

 private:
  Result<void> fill(const std::shared_ptr<const Op>& op, const std::vector<Sample>& samples,
                    const RowRng* rng) {
    for (std::size_t row = 0; row < samples.size(); ++row) {
      EXPECT_FALSE(write_row(in_.view(), row, samples[row]));
      in_.view().identity.sample_id[row] = 100 + row;
    }
    return op->run(in_.view(), out_.view(), OpContext(scratch_, rng));
  }

  Scratch scratch_;
  ElementSpec in_spec_;
  ElementSpec out_spec_;
  ScratchBlock in_;
  ScratchBlock out_;
  Result<void> done_;
};

std::vector<Sample> six_rows_of_three() {
  std::vector<Sample> rows;
  rows.reserve(6);
  for (std::int64_t row = 0; row < 6; ++row)
    rows.emplace_back(row_of({row * 3, row * 3 + 1, row * 3 + 2}));
  return rows;
}

std::int64_t doubled(std::int64_t x) noexcept {
  return 2 * x;
}

TEST(TypedFunctionTest, RunsOverAllValuesOfAllRows) {
  const OpRun run(typed(doubled, "twice"), {row_of({1, 2}), row_of({3, 4}), row_of({5, 6})});
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run.column<std::int64_t>(), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_EQ(run.spec().text(), "i64[2]");
  EXPECT_EQ(typed(doubled, "twice")->describe(), "map \"twice\" (i64) -> (i64)");
}

TEST(TypedFunctionTest, ATupleOfResultsIsATupleOfFields) {
  const auto op = typed([](std::int64_t x, float y) {
    return std::tuple(static_cast<double>(x) / 2, y > 0, static_cast<std::uint8_t>(x));
  });
  const OpRun run(op, {Sample::tuple({Tensor::scalar(std::int64_t{3}), Tensor::scalar(1.0F)}),
                       Sample::tuple({Tensor::scalar(std::int64_t{5}), Tensor::scalar(-1.0F)})});
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run.spec().text(), "(f64[], bool[], u8[])");
  EXPECT_THAT(run.column<double>("0"), ElementsAre(1.5, 2.5));
  EXPECT_THAT(run.column<bool>("1"), ElementsAre(true, false));
  EXPECT_THAT(run.column<std::uint8_t>("2"), ElementsAre(3, 5));
  EXPECT_EQ(op->describe(), "map (i64, f32) -> (f64, bool, u8)");
}

TEST(TypedFunctionTest, ValuesOfARowShareItsGenerator) {
  const auto op = typed([](std::int64_t, Rng& rng) { return rng(); });
  EXPECT_TRUE(op->random());
  const RowRng rng = [](std::size_t row) { return Rng(7, row); };
  const OpRun run(op, {row_of({0, 0}), row_of({0, 0})}, &rng);
  ASSERT_TRUE(run.ok());
  Rng first(7, 0);
  Rng second(7, 1);
  const std::vector<std::uint64_t> expected{first(), first(), second(), second()};
  EXPECT_THAT(run.column<std::uint64_t>(), testing::ElementsAreArray(expected));
}

TEST(TypedFunctionTest, AnExceptionNamesTheRowItCameFrom) {
  const auto fail_at_13 = [](std::int64_t x) {
    if (x == 13) throw std::out_of_range("thirteen");
    return x;
  };
  const RowRng rng = [](std::size_t row) { return Rng(7, row); };
  const std::vector<std::shared_ptr<const Op>> ops{
      typed(fail_at_13),
      typed([=](std::int64_t x) { return std::pair(fail_at_13(x), 1.0F); }),
      typed([=](std::int64_t x, Rng&) { return fail_at_13(x); }),
  };
  for (const auto& op : ops) {
    const OpRun run(op, six_rows_of_three(), &rng);
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.failure().row, 4U) << op->describe();
    EXPECT_THAT(run.failure().message, HasSubstr("thirteen"));
    EXPECT_THAT([&] { std::rethrow_exception(run.failure().cause); },
                ThrowsMessage<std::out_of_range>("thirteen"));
  }
}

TEST(TypedFunctionTest, AThrownValueThatIsNotAnExceptionNamesItsRow) {
  const OpRun run(typed([](std::int64_t x) {
                    if (x == 3) throw "three";
                    return x;
                  }),
                  six_rows_of_three());
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.failure().row, 1U);
  EXPECT_THROW(std::rethrow_exception(run.failure().cause), const char*);
}

TEST(TypedFunctionTest, OnlyTransientSystemErrorsAreMarkedTransient) {
  const auto fails_with = [](int code) {
    return OpRun(typed([code](std::int64_t) -> std::int64_t {
                   throw std::system_error(code, std::generic_category());
                 }),
                 {row_of({1})})
        .failure()
        .transient();
  };
  EXPECT_TRUE(fails_with(EIO));
  EXPECT_TRUE(fails_with(ETIMEDOUT));
  EXPECT_FALSE(fails_with(ENOENT));
  EXPECT_FALSE(fails_with(EACCES));
}

TEST(TypedFunctionTest, TheFunctionIsNotCalledForRowsWithoutValues) {
  const OpRun run(typed([](std::int64_t) -> std::int64_t { throw std::logic_error("called"); }),
                  {row_of({}), row_of({})});
  EXPECT_TRUE(run.ok());
}

TEST(TypedFunctionTest, AMismatchThrowsWithTheSignatureAndTheElements) {
  const auto op =
      typed([](std::int64_t x, float y) { return x + static_cast<std::int64_t>(y); }, "sum");
  const auto refuses = [&](const ElementSpec& spec) {
    EXPECT_THAT(
        [&] { static_cast<void>(op->output(spec)); },
        ThrowsMessage<ConfigError>(AllOf(HasSubstr("map \"sum\""), HasSubstr("(i64, f32) -> (i64)"),
                                         HasSubstr(spec.text()))));
  };
  // Arity, dtype, shape; and rows that differ in size.
  refuses(ElementSpec::single(Dtype::i64));
  refuses(ElementSpec::dict({{"a", Dtype::i64, {}}, {"b", Dtype::f32, {}}, {"c", Dtype::f32, {}}}));
  refuses(ElementSpec::dict({{"a", Dtype::i64, {}}, {"b", Dtype::f64, {}}}));
  refuses(ElementSpec::dict({{"a", Dtype::i64, {2}}, {"b", Dtype::f32, {3}}}));
  refuses(ElementSpec::dict({{"a", Dtype::i64, {}}, {"b", Dtype::bytes, {}}}));
  refuses(ElementSpec::dict({{"a", Dtype::i64, {kUnknown}}, {"b", Dtype::f32, {kUnknown}}}));
  EXPECT_FALSE(op->output(ElementSpec::unknown()).known);
}

TEST(SampleFunctionTest, ItsResultIsUnknownUnlessDeclared) {
  const auto same = [](const Sample& sample) { return sample; };
  EXPECT_FALSE(of_samples(same)->output(ElementSpec::single(Dtype::f32)).known);
  const ElementSpec declared = ElementSpec::single(Dtype::f32, {kUnknown});
  EXPECT_EQ(of_samples(same, {.spec = declared})->output(ElementSpec::single(Dtype::f32)),
            declared);
  EXPECT_FALSE(of_samples(same)->row_wise());
}

TEST(SampleFunctionTest, AFunctionMayReturnItsArgument) {
  const auto same = [](const Sample& sample) { return sample; };
  for (const auto& op : {of_samples(same),
                         of_samples(same, {.spec = ElementSpec::single(Dtype::i64, {kUnknown})})}) {
    const auto run =
        std::make_unique<OpRun>(op, std::vector<Sample>{row_of({1, 2}), row_of({3, 4})});
    ASSERT_TRUE(run->ok());
    const Sample kept = read_row(run->out(), 1);
    EXPECT_THAT(kept.tensor().values<std::int64_t>(), ElementsAre(3, 4));
  }
}

TEST(SampleFunctionTest, AnExceptionNamesItsRow) {
  const OpRun run(of_samples([](const Sample& sample) {
                    if (sample.tensor().values<std::int64_t>()[0] == 9)
                      throw std::domain_error("9");
                    return sample;
                  }),
                  six_rows_of_three());
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.failure().row, 3U);
  EXPECT_THROW(std::rethrow_exception(run.failure().cause), std::domain_error);
}

TEST(SampleFunctionTest, AResultThatDiffersFromItsDeclarationNamesItsRowAndBothSpecs) {
  const auto op = of_samples(
      [](const Sample& sample) {
        const auto first = sample.tensor().values<std::int64_t>()[0];
        return first == 6 ? Sample(Tensor::scalar(1.0F)) : sample;
      },
      {.spec = ElementSpec::single(Dtype::i64, {3})});
  const OpRun run(op, six_rows_of_three());
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.failure().row, 2U);
  EXPECT_THAT(run.failure().message, AllOf(HasSubstr("f32[]"), HasSubstr("i64[3]")));
}

TEST(SampleFunctionTest, ASampleWithoutTensorsIsAFailure) {
  for (const Sample& nothing : {Sample(), Sample(Tensor())}) {
    const auto op = of_samples([=](const Sample&) { return nothing; },
                               {.spec = ElementSpec::single(Dtype::u8)});
    EXPECT_FALSE(OpRun(op, six_rows_of_three()).ok());
  }
}

TEST(SampleFunctionTest, EachRowHasItsGenerator) {
  const auto op = of_samples([](const Sample&, Rng& rng) { return Tensor::scalar(rng()); },
                             {.spec = ElementSpec::single(Dtype::u64)});
  EXPECT_TRUE(op->random());
  const RowRng rng = [](std::size_t row) { return Rng(7, row); };
  const OpRun run(op, {row_of({0}), row_of({0})}, &rng);
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run.column<std::uint64_t>(), ElementsAre(Rng(7, 0)(), Rng(7, 1)()));
}

TEST(BlockFunctionTest, ABlockFunctionReceivesAllRowsAndTheirIds) {
  const auto op =
      make_block_op({[](const Block& in, Block& out) {
                      const auto from = in.column<std::int64_t>();
                      const auto to = out.column<std::uint64_t>();
                      for (std::size_t row = 0; row < in.rows(); ++row)
                        to[row] = in.sample_id()[row] + static_cast<std::uint64_t>(from[row * 3]);
                    }},
                    {.spec = ElementSpec::single(Dtype::u64)});
  const OpRun run(op, six_rows_of_three());
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run.column<std::uint64_t>(), ElementsAre(100, 104, 108, 112, 116, 120));
}

TEST(BlockFunctionTest, AnExceptionBecomesAFailure) {
  const auto op =
      make_block_op({[](const Block& in, Block&) { static_cast<void>(in.column<float>("y")); }},
                    {.spec = ElementSpec::single(Dtype::u64)});
  const OpRun run(op, six_rows_of_three());
  ASSERT_FALSE(run.ok());
  EXPECT_FALSE(run.failure().row_known);
  EXPECT_THAT(run.failure().message, AllOf(HasSubstr("\"y\""), HasSubstr("i64[3]")));
  EXPECT_THROW(std::rethrow_exception(run.failure().cause), ConfigError);
}

TEST(BlockFunctionTest, NeedsADeclaredResultOfDenseFields) {
  const BlockFn fn{[](const Block&, Block&) {}};
  EXPECT_THAT([&] { make_block_op(fn, {.name = "mine"}); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("map \"mine\""), HasSubstr("spec"))));
  EXPECT_THROW(make_block_op(fn, {.spec = ElementSpec::unknown()}), ConfigError);
  EXPECT_THROW(make_block_op(fn, {.spec = ElementSpec::single(Dtype::bytes)}), ConfigError);
  EXPECT_THROW(make_block_op(fn, {.spec = ElementSpec::single(Dtype::f32, {kUnknown})}),
               ConfigError);
}

}  // namespace
}  // namespace penstock
