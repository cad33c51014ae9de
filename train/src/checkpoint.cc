#include <penstock/train/checkpoint.h>

#include <fmt/format.h>
#include <penstock/error.h>

#include <charconv>
#include <filesystem>

#include "base/crc32c.h"
#include "base/json.h"
#include "base/printable.h"
#include "checkpoint_files.h"
#include "plain_file.h"

namespace penstock::train {
namespace fs = std::filesystem;
namespace {

constexpr int kFormat = 1;
// Far above what is ever written; a larger file is not ours.
constexpr std::uint64_t kListMax = std::uint64_t{1} << 20U;
constexpr std::uint64_t kStateMax = std::uint64_t{1} << 30U;

std::string state_json(const Checkpoint& of) {
  Json json = {{"format", kFormat},      {"iteration", of.iteration},
               {"run", of.run},          {"epoch", of.epoch},
               {"step", of.step},        {"epoch_done", of.epoch_done},
               {"data", of.data},        {"optimizer", of.optimizer_name},
               {"model", of.model_text}, {"sums", of.sums},
               {"history", of.history},  {"replicas", of.replicas},
               {"threads", of.threads}};
  if (of.learning_rate) json["learning_rate"] = *of.learning_rate;
  return json.dump(1);
}

void read_state(const std::string& what, const std::string& text, Checkpoint& into) {
  const auto json = parse_json(text);
  if (!json) throw StateError(fmt::format("{}: it is not JSON", what));
  try {
    const int format = whole_number<int>(json->at("format"));
    if (format > kFormat)
      throw StateError(
          fmt::format("{} has format {}, this version supports {}", what, format, kFormat), {},
          "use the version of penstock that wrote it, or a newer one");
    into.iteration = whole_number<std::uint64_t>(json->at("iteration"));
    into.epoch = whole_number<std::uint64_t>(json->at("epoch"));
    into.step = whole_number<std::uint64_t>(json->at("step"));
    into.epoch_done = json->at("epoch_done").get<bool>();
    into.data = json->at("data").get<std::string>();
    into.optimizer_name = json->at("optimizer").get<std::string>();
    into.model_text = json->at("model").get<std::string>();
    into.sums = json->at("sums").get<std::string>();
    into.history = json->at("history").get<std::string>();
    into.replicas = whole_number<std::uint32_t>(json->at("replicas"));
    into.threads = whole_number<int>(json->at("threads"));
    into.run = json->value("run", "");  // older versions wrote none
    if (json->contains("learning_rate"))
      into.learning_rate = json->at("learning_rate").get<double>();
  } catch (const Json::exception& error) {
    throw StateError(fmt::format("{}: {}", what, error.what()));
  }
}

struct ListedFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;
};

std::vector<ListedFile> listed_files(const std::string& path) {
  const std::string list_path = fmt::format("{}/{}", path, kFileList);
  const auto list = parse_json(read_plain_file(list_path, std::nullopt, kListMax));
  if (!list || !list->is_object())
    throw StateError(fmt::format("{}: it is not a list of files", list_path));
  std::vector<ListedFile> files;
  try {
    for (const auto& [name, entry] : list->items()) {
      if (!is_plain_name(name))
        throw StateError(fmt::format("{} names \"{}\", which is not a file of this folder",
                                     list_path, printable(name)),
                         {}, "it was changed: use an older checkpoint");
      files.push_back({name, whole_number<std::uint64_t>(entry.at("bytes")),
                       whole_number<std::uint32_t>(entry.at("crc32c"))});
    }
  } catch (const Json::exception& error) {
    throw StateError(fmt::format("{}: {}", list_path, error.what()));
  }
  return files;
}

template <typename Text>
Checkpoint decode_files(const std::string& path, Text text_of) {
  const auto name = [&](const char* file) { return fmt::format("{}/{}", path, file); };
  Checkpoint made;
  made.model = decode_tensors(name("model.safetensors"), text_of("model.safetensors"));
  made.optimizer = decode_tensors(name("optimizer.safetensors"), text_of("optimizer.safetensors"));
  made.random = decode_tensors(name("random.safetensors"), text_of("random.safetensors"));
  read_state(name("state.json"), text_of("state.json"), made);
  return made;
}

}  // namespace

CheckpointFiles encode_files(const Checkpoint& checkpoint) {
  return {{"model.safetensors", encode_tensors(checkpoint.model)},
          {"optimizer.safetensors", encode_tensors(checkpoint.optimizer)},
          {"random.safetensors", encode_tensors(checkpoint.random)},
          {kStateFile, state_json(checkpoint)}};
}

CheckpointFiles checked_files(const std::string& path) {
  CheckpointFiles files;
  for (const ListedFile& listed : listed_files(path)) {
    const std::string file = fmt::format("{}/{}", path, listed.name);
    std::string text = read_plain_file(file, listed.bytes, listed.bytes);
    if (crc32c(text) != listed.crc32c)
      throw StateError(
          fmt::format("{} has changed since it was written: its checksum differs", file), {},
          "use an older checkpoint");
    files.emplace_back(listed.name, std::move(text));
  }
  return files;
}

std::optional<std::string> run_of(const std::string& path) {
  try {
    std::optional<std::string> run;
    for (const ListedFile& listed : listed_files(path)) {
      const std::string file = fmt::format("{}/{}", path, listed.name);
      std::error_code error;
      if (fs::file_size(file, error) != listed.bytes || error) return std::nullopt;
      if (listed.name != kStateFile) continue;
      const std::string text = read_plain_file(file, listed.bytes, kStateMax);
      if (crc32c(text) != listed.crc32c) return std::nullopt;
      Checkpoint head;
      read_state(file, text, head);
      run = head.run;
    }
    return run;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Checkpoint load_checkpoint(const std::string& path) {
  const auto files = checked_files(path);
  return decode_files(path, [&](const std::string& name) -> const std::string& {
    for (const auto& [its, text] : files)
      if (its == name) return text;
    throw StateError(fmt::format("{}/{} is missing", path, name));
  });
}

std::string pack_checkpoint(const Checkpoint& checkpoint) {
  std::string packed;
  for (const auto& [name, text] : encode_files(checkpoint))
    packed += fmt::format("{} {}\n", name, text.size()) + text;
  return packed;
}

Checkpoint unpack_checkpoint(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> files;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos || end == at)
      throw StateError("rank 0 sent a checkpoint that is cut");
    const std::string head = text.substr(at, end - at);
    const std::size_t space = std::min(head.find(' '), head.size() - 1);
    std::size_t size = 0;
    const auto read = std::from_chars(head.data() + space + 1, head.data() + head.size(), size);
    if (read.ec != std::errc() || size > text.size() - end - 1)
      throw StateError("rank 0 sent a checkpoint that is cut");
    files.emplace_back(head.substr(0, space), text.substr(end + 1, size));
    at = end + 1 + size;
  }
  return decode_files("checkpoint of rank 0", [&](const std::string& name) -> const std::string& {
    for (const auto& [its, content] : files)
      if (its == name) return content;
    throw StateError(fmt::format("rank 0 sent no {}", name));
  });
}

}  // namespace penstock::train
