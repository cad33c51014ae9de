// tested in src/record/csv_test.cc
#include "record/csv_fields.h"

#include <cstring>

namespace penstock {
namespace {

CsvField cut_quoted(const CsvFormat& format, const char* at, const char* end) {
  CsvField field;
  field.quoted = true;
  const char* const first = at + 1;
  at = first;
  for (;;) {
    at =
        static_cast<const char*>(std::memchr(at, format.quote, static_cast<std::size_t>(end - at)));
    if (at == nullptr) {
      field.text = {first, static_cast<std::size_t>(end - first)};
      field.damage = "its quotes never end";
      return field;
    }
    if (at + 1 == end || at[1] != format.quote) break;
    field.doubled = true;
    at += 2;
  }
  field.text = {first, static_cast<std::size_t>(at - first)};
  field.after = csv_field_end(format, at + 1, end);
  if (field.after == nullptr) field.damage = "text follows its closing quote";
  return field;
}

}  // namespace

std::string_view CsvField::value(Scratch& scratch) const {
  if (!doubled) return text;
  char* const to = scratch.array<char>(text.size());
  const char quote = text.data()[-1];  // the opening one
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    to[bytes++] = text[i];
    if (text[i] == quote) ++i;
  }
  return {to, bytes};
}

CsvField cut_csv_field(const CsvFormat& format, const char* at, const char* end) {
  if (format.quote != '\0' && at < end && *at == format.quote) return cut_quoted(format, at, end);
  const char* stop = at;
  while (stop < end && *stop != format.delimiter && *stop != '\n') ++stop;
  CsvField field;
  field.after = stop;
  if (stop > at && stop[-1] == '\r' && (stop == end || *stop == '\n')) --stop;
  field.text = {at, static_cast<std::size_t>(stop - at)};
  return field;
}

const char* skip_csv_field(const CsvFormat& format, const char* at, const char* end) {
  if (format.quote != '\0' && at < end && *at == format.quote)
    return cut_quoted(format, at, end).after;
  while (at < end && *at != format.delimiter && *at != '\n') ++at;
  return at;
}

CsvRow cut_csv_record(const CsvFormat& format, std::string_view record) {
  CsvRow row;
  const char* at = record.data();
  const char* const end = at + record.size();
  Scratch scratch;
  for (;; ++at) {
    const CsvField field = cut_csv_field(format, at, end);
    row.damage = field.damage;
    if (field.damage != nullptr) return row;
    row.values.emplace_back(field.value(scratch));
    row.quoted.push_back(field.quoted);
    at = field.after;
    if (at == end || *at == '\n') return row;
  }
}

}  // namespace penstock
