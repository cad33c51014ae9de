// Folders and files of images and recordings, and chains of image ops by word.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "areas.h"
#include "base/json.h"
#include "base/printable.h"
#include "callee.h"
#include "op/image_step.h"
#include "op/op.h"
#include "penstock/audio.h"
#include "penstock/image.h"

namespace nb = nanobind;

namespace penstock::python {
namespace {

FollowLinks links_of(const std::string& word) {
  if (word == "never") return FollowLinks::never;
  if (word == "inside") return FollowLinks::inside;
  if (word == "anywhere") return FollowLinks::anywhere;
  throw ConfigError("follow_links must be \"never\", \"inside\" or \"anywhere\", got \"" + word +
                    "\"");
}

/// Paths are bytes, as the system has them.
std::string path_of(const nb::bytes& path) {
  return {path.c_str(), path.size()};
}

/// Which of the two families of functions is called.
enum class Files : bool { images, audio };
Files files_of(const std::string& field) {
  return field == "audio" ? Files::audio : Files::images;
}

FolderIndex list_folder(const std::string& field, const nb::bytes& root_path,
                        const std::vector<std::string>& extensions, const std::string& links,
                        bool labels, const nb::bytes& index_path) {
  const std::string root = path_of(root_path);
  const std::string index = path_of(index_path);
  const FolderOptions options{
      .extensions = extensions, .follow_links = links_of(links), .labels = labels, .index = index};
  const nb::gil_scoped_release release;
  if (files_of(field) == Files::audio) return list_audio(root, options);
  return index.empty() ? list_images(root, options) : FolderIndex::load(index, root);
}

/// (word, about, [(parameter, default as JSON or None, about)]) of every step.
nb::list steps() {
  nb::list all;
  for (const StepKind& kind : image_steps()) {
    nb::list parameters;
    for (const StepParameter& parameter : kind.parameters) {
      const std::string fallback = parameter.fallback.dump();
      parameters.append(nb::make_tuple(
          parameter.name,
          parameter.fallback.is_null() ? nb::none() : nb::object(nb::str(fallback.c_str())),
          parameter.about));
    }
    all.append(nb::make_tuple(kind.word, kind.about, parameters));
  }
  return all;
}

image::MixOptions mix_options(double alpha, double chance, std::uint64_t seed,
                              const std::string& image, const std::string& label) {
  return {alpha, chance, seed, image, label};
}

}  // namespace

void bind_image(nb::module_& module) {
  nb::class_<FolderIndex>(module, "FolderIndex")
      .def("save",
           [](const FolderIndex& self, const nb::bytes& file) {
             const std::string path = path_of(file);
             const nb::gil_scoped_release release;
             self.save(path);
           })
      .def("check", &FolderIndex::check, nb::call_guard<nb::gil_scoped_release>())
      .def("files", &FolderIndex::files)
      .def("bytes", &FolderIndex::bytes)
      .def("name",
           [](const FolderIndex& self, std::uint64_t file) { return printable(self.name(file)); })
      .def("class_names",
           [](const FolderIndex& self) {
             nb::list names;
             for (const std::string& name : self.class_names())
               names.append(nb::bytes(name.data(), name.size()));
             return names;
           })
      .def("class_files", &FolderIndex::class_files)
      .def("left_out_text", &FolderIndex::left_out_text);
  module.def("list_folder", list_folder);
  module.def("file_folder", [](const std::string& field, const FolderIndex& index, bool with_path) {
    return Owning<Dataset>(files_of(field) == Files::audio
                               ? audio_folder(index, with_path)
                               : Dataset::image_folder(index, with_path),
                           {});
  });
  module.def("files", [](const std::string& field, const std::vector<nb::bytes>& paths,
                         const std::vector<std::int64_t>& labels) {
    std::vector<std::string> names;
    names.reserve(paths.size());
    for (const nb::bytes& path : paths) names.push_back(path_of(path));
    const nb::gil_scoped_release release;
    return Owning<Dataset>(files_of(field) == Files::audio ? audio_files(names, labels)
                                                           : Dataset::from_paths(names, labels),
                           {});
  });
  module.def("list_files", [](const nb::bytes& pattern, bool hidden) {
    const std::string path = path_of(pattern);
    const nb::gil_scoped_release release;
    return Owning<Dataset>(Dataset::list_files(path, {.hidden = hidden}), {});
  });
  module.def("read_file", [](const std::string& path) { return read_file(path); });

  nb::class_<image::Chain>(module, "Chain")
      .def("step", &image::Chain::step)
      .def("seed", &image::Chain::seed)
      .def("op", [](const image::Chain& self) { return static_cast<OpCall>(self); });
  module.def("image_of", &image::of);
  module.def("image_steps", steps);
  module.def("catalogue_words", catalogue_words);
  module.def("encode_image", [](const std::string& format, int quality, const std::string& field) {
    return image::encode({format, quality, field});
  });
  module.def("one_hot", &image::one_hot);
  module.def("mixup", [](double alpha, double chance, std::uint64_t seed, const std::string& image,
                         const std::string& label) {
    return image::mixup(mix_options(alpha, chance, seed, image, label));
  });
  module.def("cutmix", [](double alpha, double chance, std::uint64_t seed, const std::string& image,
                          const std::string& label) {
    return image::cutmix(mix_options(alpha, chance, seed, image, label));
  });
}

}  // namespace penstock::python
