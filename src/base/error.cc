#include "penstock/error.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"

namespace penstock {
namespace {

std::string compose(const std::string& message, const Where& where, const std::string& remedy) {
  std::string text = message;
  const std::string place = where.text();
  if (!place.empty()) text += fmt::format(" [{}]", place);
  if (!remedy.empty()) text += fmt::format(" -> {}", remedy);
  return text;
}

}  // namespace

std::string Where::text() const {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!text.empty()) text += ", ";
    text += part;
  };
  if (!dataset.empty()) add(fmt::format("dataset {}", dataset));
  if (sample) add(fmt::format("sample {} of source {}", sample->number, sample->source));
  if (!file.empty()) add(fmt::format("file {}", printable(file)));
  if (!field.empty()) add(fmt::format("field {}", field));
  if (!op.empty()) add(fmt::format("op {}", op));
  if (epoch) add(fmt::format("epoch {}", *epoch));
  if (step) add(fmt::format("step {}", *step));
  if (position) add(fmt::format("position {}", *position));
  return text;
}

Error::Error(const std::string& message, Where where, std::string remedy)
    : std::runtime_error(compose(message, where, remedy)),
      message_(message),
      where_(std::move(where)),
      remedy_(std::move(remedy)) {}

SampleError::SampleError(const std::string& message, Where where, std::string remedy,
                         std::exception_ptr cause)
    : Error(message, std::move(where), std::move(remedy)), cause_(std::move(cause)) {}

}  // namespace penstock
