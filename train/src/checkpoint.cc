#include <penstock/train/checkpoint.h>

#include <fcntl.h>
#include <fmt/format.h>
#include <penstock/error.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/crc32c.h"
#include "base/io.h"
#include "base/json.h"
#include "base/report.h"

namespace penstock::train {
namespace fs = std::filesystem;
namespace {

constexpr const char* kList = "files.json";
constexpr const char* kPrefix = "step-";
constexpr int kFormat = 1;

std::string state_json(const Checkpoint& of) {
  Json json = {{"format", kFormat},
               {"iteration", of.iteration},
               {"epoch", of.epoch},
               {"step", of.step},
               {"epoch_done", of.epoch_done},
               {"data", of.data},
               {"optimizer", of.optimizer_name},
               {"model", of.model_text},
               {"sums", of.sums},
               {"history", of.history},
               {"replicas", of.replicas},
               {"threads", of.threads}};
  if (of.learning_rate) json["learning_rate"] = *of.learning_rate;
  return json.dump(1);
}

void read_state(const std::string& what, const std::string& text, Checkpoint& into) {
  const auto json = parse_json(text);
  if (!json) throw StateError(fmt::format("{}: it is no JSON", what));
  try {
    const int format = whole_number<int>(json->at("format"));
    if (format > kFormat)
      throw StateError(
          fmt::format("{} has format {}, this version knows {}", what, format, kFormat), {},
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
    if (json->contains("learning_rate"))
      into.learning_rate = json->at("learning_rate").get<double>();
  } catch (const Json::exception& error) {
    throw StateError(fmt::format("{}: {}", what, error.what()));
  }
}

/// The files of a checkpoint by name.
std::vector<std::pair<std::string, std::string>> encode_files(const Checkpoint& checkpoint) {
  return {{"model.safetensors", encode_tensors(checkpoint.model)},
          {"optimizer.safetensors", encode_tensors(checkpoint.optimizer)},
          {"random.safetensors", encode_tensors(checkpoint.random)},
          {"state.json", state_json(checkpoint)}};
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

[[noreturn]] void throw_io(const std::string& what, const std::string& why) {
  throw IoError(fmt::format("checkpoint {}: {}", what, why), {},
                "is the disk full, or the folder not writable?");
}

/// Brings the names in a folder to disk.
void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  Json list = Json::object();
  for (const auto& [name, text] : encode_files(checkpoint)) {
    const std::string path = (folder / name).string();
    if (const auto done = Io::real().publish(path, text); !done)
      throw_io(path, done.failure().message);
    list[name] = {{"bytes", text.size()}, {"crc32c", crc32c(text)}};
  }
  const std::string path = (folder / kList).string();
  if (const auto done = Io::real().publish(path, list.dump(1)); !done)
    throw_io(path, done.failure().message);
}

/// No file of a checkpoint is larger.
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 40;

std::string read_file(const std::string& path) {
  auto text = Io::real().read_text(path, kFileBytesMax);
  if (!text) throw StateError(fmt::format("{}: {}", path, text.failure().message));
  return std::move(*text);
}

/// The files of a checkpoint, all there and as they were written.
std::vector<std::pair<std::string, std::string>> checked_files(const std::string& path) {
  const std::string list_path = fmt::format("{}/{}", path, kList);
  const auto list = parse_json(read_file(list_path));
  if (!list || !list->is_object())
    throw StateError(fmt::format("{}: it is no list of files", list_path));
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& [name, entry] : list->items()) {
    const std::string file = fmt::format("{}/{}", path, name);
    std::string text = read_file(file);
    const bool fits = entry.is_object() && entry.value("bytes", Json()) == Json(text.size()) &&
                      entry.value("crc32c", Json()) == Json(crc32c(text));
    if (!fits)
      throw StateError(fmt::format("{} is not as it was written: {} bytes now", file, text.size()),
                       {}, "use an older checkpoint");
    files.emplace_back(name, std::move(text));
  }
  return files;
}

/// Steps of a folder by number, newest first.
std::vector<std::pair<std::uint64_t, std::string>> steps_of(const std::string& folder) {
  std::vector<std::pair<std::uint64_t, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const std::string digits = name.substr(std::strlen(kPrefix));
    if (digits.empty() || digits.size() > 18 ||
        !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    found.emplace_back(std::stoull(digits), entry.path().string());
  }
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace

std::string save_checkpoint_as(const std::string& folder, const std::string& name,
                               const Checkpoint& checkpoint) {
  const fs::path path = fs::path(folder) / name;
  const fs::path unfinished = fs::path(folder) / fmt::format(".{}.unfinished", name);
  std::error_code error;
  fs::remove_all(unfinished, error);
  fs::create_directories(unfinished, error);
  if (error) throw_io(unfinished.string(), error.message());
  try {
    write_checkpoint(unfinished, checkpoint);
    const fs::path old = fs::path(folder) / fmt::format(".{}.old", name);
    fs::remove_all(old);
    if (fs::exists(path)) fs::rename(path, old);
    fs::rename(unfinished, path);
    fs::remove_all(old);
  } catch (const fs::filesystem_error& failed) {
    throw_io(path.string(), failed.what());
  } catch (...) {
    fs::remove_all(unfinished, error);
    throw;
  }
  sync_folder(folder);
  return path.string();
}

std::string save_checkpoint(const std::string& folder, const Checkpoint& checkpoint,
                            std::uint64_t keep) {
  const std::string path = save_checkpoint_as(
      folder, fmt::format("{}{:010}", kPrefix, checkpoint.iteration), checkpoint);
  std::error_code error;
  std::uint64_t kept = 0;
  for (const auto& [iteration, old] : steps_of(folder))
    if (++kept > std::max<std::uint64_t>(1, keep)) fs::remove_all(old, error);
  return path;
}

std::optional<std::string> newest_checkpoint(const std::string& folder) {
  if (fs::exists(fs::path(folder) / kList)) return folder;  // it is one itself
  for (const auto& [iteration, path] : steps_of(folder)) {
    try {
      (void)checked_files(path);
      return path;
    } catch (const StateError& error) {
      report(fmt::format("checkpoint {} is torn and not used: {}", path, error.what()));
    }
  }
  return std::nullopt;
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
    if (end == std::string::npos) throw StateError("rank 0 sent a checkpoint that is cut");
    const std::string head = text.substr(at, end - at);
    const std::size_t space = head.find(' ');
    const std::size_t size = std::stoull(head.substr(space + 1));
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
