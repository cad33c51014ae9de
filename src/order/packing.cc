#include "order/packing.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace penstock {
namespace {

/// Documents one after the other, cut where a row ends.
PackedBlock pack_stream(std::span<const std::uint32_t> lengths,
                        std::span<const std::uint32_t> order, const PackRules& rules) {
  PackedBlock block;
  std::uint64_t at = rules.length;  // no row is open
  for (const std::uint32_t document : order) {
    if (lengths[document] == 0) continue;
    std::uint64_t left = std::uint64_t{lengths[document]} + (rules.separated ? 1 : 0);
    std::uint64_t first = 0;
    while (left > 0) {
      if (at == rules.length) {
        block.first.push_back(static_cast<std::uint32_t>(block.parts.size()));
        at = 0;
      }
      const std::uint64_t count = std::min(left, rules.length - at);
      block.parts.push_back({document, static_cast<std::uint32_t>(first),
                             static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(at)});
      at += count;
      first += count;
      left -= count;
    }
  }
  block.first.push_back(static_cast<std::uint32_t>(block.parts.size()));
  return block;
}

/// Whole documents, or pieces of those that are longer than a row.
std::vector<DocumentPart> pieces_of(std::span<const std::uint32_t> lengths,
                                    std::span<const std::uint32_t> order, const PackRules& rules) {
  std::vector<DocumentPart> pieces;
  for (const std::uint32_t document : order) {
    if (lengths[document] == 0) continue;
    const std::uint64_t all = std::uint64_t{lengths[document]} + (rules.separated ? 1 : 0);
    if (all > rules.length && rules.too_long == LongDocument::drop) continue;
    const bool cut = rules.too_long == LongDocument::cut;
    for (std::uint64_t first = 0; first < all; first += rules.length) {
      pieces.push_back({document, static_cast<std::uint32_t>(first),
                        static_cast<std::uint32_t>(std::min(rules.length, all - first)), 0});
      if (cut) break;
    }
  }
  return pieces;
}

PackedBlock pack_best_fit(std::span<const std::uint32_t> lengths,
                          std::span<const std::uint32_t> order, const PackRules& rules) {
  std::vector<DocumentPart> pieces = pieces_of(lengths, order, rules);
  // The longest first; the order of the documents decides only among equal lengths, so the number
  // of rows does not depend on it.
  std::ranges::stable_sort(pieces, std::ranges::greater{}, &DocumentPart::count);
  std::vector<std::vector<DocumentPart>> rows;
  std::set<std::pair<std::uint64_t, std::size_t>> spaces;  // free tokens, row
  for (DocumentPart& piece : pieces) {
    const auto found = spaces.lower_bound({piece.count, 0});
    std::size_t row = rows.size();
    std::uint64_t space = rules.length;
    if (found != spaces.end()) {
      std::tie(space, row) = *found;
      spaces.erase(found);
    } else {
      rows.emplace_back();
    }
    piece.at = static_cast<std::uint32_t>(rules.length - space);
    rows[row].push_back(piece);
    if (space > piece.count) spaces.emplace(space - piece.count, row);
  }
  PackedBlock block;
  for (const auto& row : rows) {
    block.first.push_back(static_cast<std::uint32_t>(block.parts.size()));
    block.parts.insert(block.parts.end(), row.begin(), row.end());
  }
  block.first.push_back(static_cast<std::uint32_t>(block.parts.size()));
  return block;
}

}  // namespace

PackedBlock pack_block(std::span<const std::uint32_t> lengths, std::span<const std::uint32_t> order,
                       const PackRules& rules) {
  return rules.how == PackHow::stream ? pack_stream(lengths, order, rules)
                                      : pack_best_fit(lengths, order, rules);
}

}  // namespace penstock
