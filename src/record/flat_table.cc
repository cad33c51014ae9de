#include "record/flat_table.h"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

// What is referred to stands behind what refers to it, so that a table is written in one go.
using Reference = std::uint32_t;  // counted from where it stands itself

constexpr std::size_t kWidest = 8;  // bytes of the largest number

std::size_t padded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

template <typename T>
void put(std::string& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);  // the machine is little-endian
}

void refer(std::string& out, std::size_t from, std::size_t to) {
  put(out, from, static_cast<Reference>(to - from));
}

/// Appends the number of elements so that these begin at a multiple of `unit`; returns where.
std::size_t append_count(std::string& out, std::size_t count, std::size_t unit) {
  const std::size_t at =
      padded(out.size() + sizeof(Reference), std::max(unit, sizeof(Reference))) - sizeof(Reference);
  out.resize(at + sizeof(Reference));
  put(out, at, static_cast<Reference>(count));
  return at;
}

}  // namespace

FlatTable& FlatTable::table(std::uint16_t field, FlatTable value) {
  add(field, Kind::table, {});
  fields_.back().inner.push_back(std::move(value));
  return *this;
}

FlatTable& FlatTable::tables(std::uint16_t field, std::vector<FlatTable> values) {
  add(field, Kind::tables, {});
  fields_.back().inner = std::move(values);
  return *this;
}

FlatTable& FlatTable::structs(std::uint16_t field, std::string bytes, std::size_t struct_bytes) {
  add(field, Kind::structs, std::move(bytes));
  fields_.back().struct_bytes = struct_bytes;
  return *this;
}

std::string FlatTable::buffer() const {
  std::string out(sizeof(Reference), '\0');
  refer(out, 0, append_to(out));
  out.resize(padded(out.size(), kWidest));
  return out;
}

std::size_t FlatTable::Field::inline_bytes() const {
  return kind == Kind::number ? bytes.size() : sizeof(Reference);
}

std::size_t FlatTable::append_to(std::string& out) const {
  using Slot = std::uint16_t;  // where a field is in its table; 0: it is not set
  std::vector<Slot> slots;
  std::size_t bytes = sizeof(Reference);  // the table begins with the distance to its slots
  std::vector<std::size_t> places;
  for (const Field& field : fields_) {
    places.push_back(padded(bytes, field.inline_bytes()));
    bytes = places.back() + field.inline_bytes();
    slots.resize(std::max<std::size_t>(slots.size(), field.number + 1U));
    slots[field.number] = static_cast<Slot>(places.back());
  }
  slots.insert(slots.begin(),
               {static_cast<Slot>((slots.size() + 2) * sizeof(Slot)), static_cast<Slot>(bytes)});
  const std::size_t slot_bytes = slots.size() * sizeof(Slot);
  const std::size_t start = padded(out.size() + slot_bytes, kWidest);
  out.resize(start + bytes);
  std::memcpy(out.data() + start - slot_bytes, slots.data(), slot_bytes);
  put(out, start, static_cast<std::int32_t>(slot_bytes));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::size_t at = start + places[i];
    if (fields_[i].kind == Kind::number) {
      std::memcpy(out.data() + at, fields_[i].bytes.data(), fields_[i].bytes.size());
    } else {
      const std::size_t target = fields_[i].append_to(out);
      refer(out, at, target);
    }
  }
  return start;
}

std::size_t FlatTable::Field::append_to(std::string& out) const {
  if (kind == Kind::table) return inner.front().append_to(out);
  if (kind == Kind::text) {
    const std::size_t at = append_count(out, bytes.size(), 1);
    out.append(bytes.data(), bytes.size() + 1);  // with the NUL at its end
    return at;
  }
  if (kind == Kind::structs) {
    const std::size_t at = append_count(out, bytes.size() / struct_bytes, kWidest);
    out += bytes;
    return at;
  }
  const std::size_t at = append_count(out, inner.size(), 1);
  out.resize(out.size() + inner.size() * sizeof(Reference));
  for (std::size_t i = 0; i < inner.size(); ++i) {
    const std::size_t target = inner[i].append_to(out);
    refer(out, at + (i + 1) * sizeof(Reference), target);
  }
  return at;
}

}  // namespace penstock
