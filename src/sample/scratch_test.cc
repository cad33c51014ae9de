#include "sample/scratch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace penstock {
namespace {

struct Piece {
  std::byte* data;
  std::size_t bytes;
  std::byte mark;
};

Piece take(Scratch& scratch, std::size_t bytes, int mark) {
  const Piece piece{scratch.allocate(bytes), bytes, static_cast<std::byte>(mark)};
  std::fill_n(piece.data, bytes, piece.mark);
  return piece;
}

bool intact(const Piece& piece) {
  return std::all_of(piece.data, piece.data + piece.bytes,
                     [&](std::byte byte) { return byte == piece.mark; });
}

TEST(ScratchTest, PiecesOfAnySizeAreAlignedAndApart) {
  Scratch scratch;
  std::vector<Piece> pieces;
  int mark = 0;
  for (const std::size_t bytes : {1, 0, 63, 64, 65, 65'471, 65'536, 65'537, 1, 300'000, 64})
    pieces.push_back(take(scratch, bytes, ++mark));
  for (const Piece& piece : pieces) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece.data) % 64, 0U) << piece.bytes;
    EXPECT_TRUE(intact(piece)) << piece.bytes;
  }
}

TEST(ScratchTest, AFrameFreesItsAllocations) {
  Scratch scratch;
  const Piece outer = take(scratch, 100, 1);
  std::byte* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    const Scratch::Frame frame(scratch);
    const Piece piece = take(scratch, 100, 2);
    if (round == 0) first = piece.data;
    EXPECT_EQ(piece.data, first);
    take(scratch, 1'000'000, 3);
  }
  EXPECT_TRUE(intact(outer));
}

TEST(ScratchTest, MemoryOutsideAFrameIsNotAffectedByIt) {
  Scratch scratch;
  std::vector<Piece> outer;
  for (int depth = 0; depth < 3; ++depth) {
    outer.push_back(take(scratch, 40'000, depth));
    const Scratch::Frame frame(scratch);
    for (int i = 0; i < 10; ++i) take(scratch, 30'000, 99);
    const Scratch::Frame inner(scratch);
    take(scratch, 200'000, 98);
  }
  for (const Piece& piece : outer) EXPECT_TRUE(intact(piece));
}

TEST(ScratchTest, RecordsOfAscendingSizeDoNotAccumulate) {
  Scratch scratch;
  std::size_t largest = 0;
  for (std::size_t bytes = 1000; bytes < 40'000'000; bytes += bytes / 8) {
    const Scratch::Frame frame(scratch);
    const Scratch::Frame inner(scratch);
    scratch.allocate(bytes);
    largest = std::max(largest, bytes);
    EXPECT_LE(scratch.bytes(), 3 * bytes + 1'000'000) << "while it is used";
  }
  EXPECT_LE(scratch.bytes(), 2 * largest);
}

TEST(ScratchTest, LargeChunksAreFreedWhenTheOutermostFrameEnds) {
  Scratch scratch;
  const Piece outside = take(scratch, 100, 1);
  for (int round = 0; round < 2; ++round) {
    const Scratch::Frame frame(scratch);
    {
      const Scratch::Frame inner(scratch);
      scratch.allocate(Scratch::kIdleBytesMax + 1);
    }
    EXPECT_GT(scratch.bytes(), Scratch::kIdleBytesMax) << "a frame is open";
  }
  EXPECT_LT(scratch.bytes(), 1'000'000U);
  EXPECT_TRUE(intact(outside));
}

TEST(ScratchTest, RepeatedUseAllocatesNoMoreMemory) {
  Scratch scratch;
  const auto use = [&scratch] {
    const Scratch::Frame frame(scratch);
    for (int i = 0; i < 20; ++i) scratch.allocate(50'000);
    return scratch.allocate(1);
  };
  for (int round = 0; round < 4; ++round) use();
  const std::size_t settled = scratch.bytes();
  const std::byte* const last = use();
  EXPECT_EQ(use(), last);
  EXPECT_EQ(scratch.bytes(), settled);
}

TEST(ScratchStockTest, MemoryIsUsedAgainAndNeverByTwoAtOnce) {
  ScratchStock stock;
  const Scratch* first = nullptr;
  {
    const ScratchStock::Loan loan(stock);
    first = &loan.scratch();
    const ScratchStock::Loan other(stock);
    EXPECT_NE(&other.scratch(), first);
  }
  const ScratchStock::Loan again(stock);
  const ScratchStock::Loan more(stock);
  EXPECT_TRUE(&again.scratch() == first || &more.scratch() == first);
}

}  // namespace
}  // namespace penstock
