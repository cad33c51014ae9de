// The index of a token file may be damaged or belong to another file: any bytes list documents that
// are within the tokens, or throw an error that says why.
#include <vector>

#include "penstock/error.h"
#include "sample/rows.h"
#include "source/ragged_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using penstock::Tensor;
  const Tensor index =
      Tensor::of(std::span<const std::uint8_t>(data, size), {static_cast<std::int64_t>(size)});
  const Tensor tokens = Tensor::of(std::vector<std::uint8_t>(64, 1));
  try {
    const auto source = penstock::read_megatron("x", index, tokens);
    penstock::Scratch scratch;
    std::size_t sum = 0;
    for (std::uint64_t i = 0; i < source->size(); ++i) {
      const penstock::ScratchBlock block(source->spec(), 1, scratch);
      if (!source->decode({&i, 1}, {}, block.view(), scratch)) std::abort();
      const penstock::Sample row = penstock::read_row(block.view(), 0);
      for (const std::byte byte : row.tensor().raw()) sum += std::to_integer<unsigned>(byte);
    }
    volatile std::size_t sink = sum;  // every byte is readable
    (void)sink;
  } catch (const penstock::ConfigError&) {
  }
  return 0;
}
