// tested in src/plan/flows_test.cc
#include "plan/cursor.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/gather.h"
#include "sample/rows.h"

namespace penstock {
namespace {

[[noreturn]] void garbled() {
  throw StateError("the state's anchor does not fit this dataset", {},
                   "build the dataset as it was when the state was saved");
}

}  // namespace

std::uint64_t AnchorReader::number() {
  if (number_ >= anchor_.numbers.size()) garbled();
  return anchor_.numbers[number_++];
}

std::string AnchorReader::text() {
  if (text_ >= anchor_.texts.size()) garbled();
  return anchor_.texts[text_++];
}

Anchor AnchorReader::anchor() {
  Anchor part;
  const std::uint64_t numbers = number();
  const std::uint64_t texts = number();
  for (std::uint64_t i = 0; i < numbers; ++i) part.numbers.push_back(number());
  for (std::uint64_t i = 0; i < texts; ++i) part.texts.push_back(text());
  return part;
}

void write_anchor(const Anchor& part, Anchor& to) {
  to.numbers.push_back(part.numbers.size());
  to.numbers.push_back(part.texts.size());
  to.numbers.insert(to.numbers.end(), part.numbers.begin(), part.numbers.end());
  to.texts.insert(to.texts.end(), part.texts.begin(), part.texts.end());
}

Result<std::uint64_t> skip_rows(Cursor& cursor, const ElementSpec& spec, std::uint64_t rows,
                                Pulling& pulling) {
  constexpr std::uint64_t kAtOnce = 1024;
  RowBuffer buffer(spec);
  buffer.reserve(std::min(rows, kAtOnce));
  std::uint64_t skipped = 0;
  while (skipped < rows) {
    const std::size_t wanted = std::min(rows - skipped, kAtOnce);
    auto got = cursor.pull(buffer.rows(0, wanted), pulling);
    if (!got) return std::move(got.failure());
    skipped += *got;
    if (*got < wanted) break;
  }
  return skipped;
}

Result<std::size_t> pull_as(Cursor& cursor, const ElementSpec& spec, const BlockView& out,
                            Pulling& pulling) {
  if (spec.known == (out.samples == nullptr)) {
    if (spec.known && out.spec != &spec && *out.spec != spec)
      return Failure{fmt::format("elements are {} here and {} elsewhere in the dataset",
                                 spec.text(), out.spec->text()),
                     {},
                     "all parts of a stream must have the same fields"};
    return cursor.pull(out, pulling);
  }
  RowBuffer made(spec);
  made.reserve(out.rows);
  const BlockView rows = made.rows(0, out.rows);
  auto got = cursor.pull(rows, pulling);
  if (!got) return got;
  for (std::size_t row = 0; row < *got; ++row) {
    if (const auto wrong = write_row(out, row, read_row(rows, row)))
      return Failure{*wrong, {}, "every element must have the declared fields", nullptr, row};
    out.identity.sample_id[row] = rows.identity.sample_id[row];
    out.identity.occurrence[row] = rows.identity.occurrence[row];
  }
  return got;
}

void pick_rows(const BlockView& from, std::span<const std::uint64_t> picks, const BlockView& to) {
  for (std::size_t i = 0; i < from.columns.size(); ++i) {
    const Column& source = from.columns[i];
    if (source.dense()) {
      gather_rows(source.data, source.row_bytes, picks, to.columns[i].data);
    } else {
      for (std::size_t row = 0; row < picks.size(); ++row)
        to.columns[i].tensors[row] = source.tensors[picks[row]];
    }
  }
  if (from.samples != nullptr)
    for (std::size_t row = 0; row < picks.size(); ++row) to.samples[row] = from.samples[picks[row]];
  const auto pick = [&](const std::uint64_t* numbers, std::uint64_t* out) {
    for (std::size_t row = 0; row < picks.size(); ++row) out[row] = numbers[picks[row]];
  };
  pick(from.identity.sample_id, to.identity.sample_id);
  if (to.identity.occurrence != nullptr) pick(from.identity.occurrence, to.identity.occurrence);
}

}  // namespace penstock
