#pragma once
// Tar files, the programs that build them, and compressed files.
#include <string>

#include "fuzz/image_seeds.h"
#include "record/compressed_for_tests.h"
#include "record/tar_for_tests.h"

namespace penstock::fuzz {

inline Seeds tar_seeds() {
  Seeds seeds;
  const auto add = [&seeds](const char* target, const std::string& name, const std::string& text) {
    seeds.push_back({target, name, file_of(text)});
  };
  // The mode, the size of pieces, then the tar itself or what it is built of.
  const std::string as_it_is("\0\1\0", 3);
  add("tar", "plain",
      as_it_is + for_tests::tar_file("a.jpg", "pixels") + for_tests::tar_file("a.cls", "1") +
          for_tests::tar_end());
  add("tar", "long_names",
      as_it_is + for_tests::gnu_long_name(std::string(150, 'n') + ".jpg") +
          for_tests::tar_file("n", "x") +
          for_tests::pax_entry(for_tests::pax_line("path", "b.jpg")) +
          for_tests::tar_file("n", "x"));
  add("tar", "empty", as_it_is);
  for (int kind = 0; kind < 8; ++kind) {
    std::string text("\1\0\7\4", 4);
    for (const char name : {'\0', '\x10', '\1', '\x11'})
      text += std::string{static_cast<char>(kind * 32), name, '\2', static_cast<char>(kind * 50)};
    add("tar", fmt::format("built_{}", kind), text + "\2");
    add("tar", fmt::format("damaged_{}", kind), text + "\2" + std::string("\1\0\0\x7c\xff", 5));
  }
  for (int type = 0; type < 20; ++type)
    add("tar", fmt::format("type_{}", type),
        std::string("\1\0\7\2", 4) + static_cast<char>(type) + std::string("\0\1\1", 3) +
            std::string("\0\x10\0\3\2", 5));
  const std::string text = "some text, some text" + std::string(300, 't');
  add("compressed", "gzip", std::string("\0\7\1", 3) + for_tests::stored_gzip(text));
  add("compressed", "gzip_two",
      std::string("\0\7\1", 3) + for_tests::stored_gzip(text) + for_tests::stored_gzip(""));
  add("compressed", "zlib", std::string("\1\7\1", 3) + for_tests::stored_zlib(text));
  add("compressed", "zstd", std::string("\2\7\1", 3) + for_tests::stored_zstd(text));
  return seeds;
}

}  // namespace penstock::fuzz
