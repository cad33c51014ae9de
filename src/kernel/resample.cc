#include "kernel/resample.h"

#if defined(PENSTOCK_HIGHWAY) && defined(__x86_64__)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/resample.cc"  // NOLINT: the name is Highway's
#include <hwy/foreach_target.h>                  // compiles what follows once for each CPU target
// after foreach_target
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out) {
  plain::mix_rows(rows, weights, taps, values, out);
}
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  plain::mix_columns(row, axis, channels, out);
}
#else

/// Two 16-bit weights, adjacent in memory, as one number.
HWY_INLINE std::int32_t weight_pair(const std::int16_t* weights) {
  std::int32_t pair;
  __builtin_memcpy(&pair, weights, sizeof pair);
  return pair;
}

/// a * wa + b * wb of neighboring lanes, added to `sum`; on x86 the lanes stay in order.
template <class D32, class V16, class V32>
HWY_INLINE V32 add_products(D32 d32, V16 values, V16 weights, V32 sum) {
  V32 unused = hn::Zero(d32);
  return hn::ReorderWidenMulAccumulate(d32, values, weights, sum, unused);
}

void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const hn::Repartition<std::int32_t, decltype(d16)> d32;
  const std::size_t lanes = hn::Lanes(d16);
  for (std::size_t i = 0; i < values; i += lanes) {
    auto low = hn::Set(d32, 1 << 7);
    auto high = low;
    for (std::size_t k = 0; k < taps; k += 2) {
      const auto a = hn::PromoteTo(d16, hn::LoadU(d8, rows[k] + i));
      const auto b = hn::PromoteTo(d16, hn::LoadU(d8, rows[k + 1] + i));
      const auto pair = hn::BitCast(d16, hn::Set(d32, weight_pair(weights + k)));
      low = add_products(d32, hn::InterleaveLower(d16, a, b), pair, low);
      high = add_products(d32, hn::InterleaveUpper(d16, a, b), pair, high);
    }
    hn::StoreU(hn::ReorderDemote2To(d16, hn::ShiftRight<8>(low), hn::ShiftRight<8>(high)), d16,
               out + i);
  }
}

/// The bytes of two neighboring pixels in the order that add_products needs: both of channel 0,
/// both of channel 1, ...; 0x80 yields zero.
HWY_ALIGN constexpr std::uint8_t kPairs[5][16] = {
    {},
    {0, 1, 2, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
    {0, 1, 4, 5, 2, 3, 6, 7, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80},
    {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, 0x80, 0x80, 0x80, 0x80},
    {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15},
};

/// With a known number of taps the inner loop is unrolled; `Taps` 0: any number.
template <std::size_t Taps>
void mix_taps(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  const std::size_t taps = Taps == 0 ? axis.taps : Taps;
  const hn::FixedTag<std::int16_t, 8> d16;
  const hn::FixedTag<std::int32_t, 4> d32;
  const hn::FixedTag<float, 4> df;
  const hn::FixedTag<std::uint8_t, 16> d8;
  const auto order = hn::BitCast(d16, hn::Load(d8, kPairs[channels]));
  const auto scale = hn::Set(df, 0x1p-20F);
  const auto width = static_cast<std::size_t>(channels);
  const std::int16_t* weights = axis.fixed;
  for (std::size_t i = 0; i < axis.count; ++i) {
    const std::int16_t* pixel =
        row + static_cast<std::size_t>(axis.first[i] - axis.source_first) * width;
    auto sum = hn::Zero(d32);
    for (std::size_t k = 0; k < taps; k += 2) {
      const auto values = hn::TableLookupBytesOr0(hn::LoadU(d16, pixel), order);
      sum = add_products(d32, values, hn::BitCast(d16, hn::Set(d32, weight_pair(weights))), sum);
      pixel += 2 * width;
      weights += 2;
    }
    hn::StoreU(hn::Mul(hn::ConvertTo(df, sum), scale), df, out + 4 * i);
  }
}

void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  switch (axis.taps) {
    case 2:
      return mix_taps<2>(row, axis, channels, out);
    case 4:
      return mix_taps<4>(row, axis, channels, out);
    case 6:
      return mix_taps<6>(row, axis, channels, out);
    default:
      return mix_taps<0>(row, axis, channels, out);
  }
}
#endif

}  // namespace penstock::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

HWY_EXPORT(mix_rows);
HWY_EXPORT(mix_columns);

void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out) {
  HWY_DYNAMIC_DISPATCH(mix_rows)(rows, weights, taps, values, out);
}
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  HWY_DYNAMIC_DISPATCH(mix_columns)(row, axis, channels, out);
}

}  // namespace penstock
#endif

#else

namespace penstock {

void mix_rows(const std::uint8_t* const* rows, const std::int16_t* weights, std::size_t taps,
              std::size_t values, std::int16_t* out) {
  plain::mix_rows(rows, weights, taps, values, out);
}
void mix_columns(const std::int16_t* row, const Axis& axis, int channels, float* out) {
  plain::mix_columns(row, axis, channels, out);
}

}  // namespace penstock

#endif
