// What the image workloads are measured by: nothing but decoding, bytes in memory, one or two
// threads. reference png|jpeg DIR THREADS prints items/s and CPU per item as one line of JSON.
#include <cstdio>
// after cstdio
#include <fmt/core.h>
#include <jpeglib.h>
#include <spng.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/thread.h"

namespace {

using Bytes = std::vector<unsigned char>;
using Clock = std::chrono::steady_clock;

std::vector<Bytes> load(const std::string& root, const std::string& extension, std::size_t most) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Bytes> files;
  const std::size_t every = std::max<std::size_t>(1, paths.size() / most);
  for (std::size_t i = 0; i < paths.size() && files.size() < most; i += every) {
    std::ifstream file(paths[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

void decode_png(const Bytes& file, Bytes& out) {
  spng_ctx* const context = spng_ctx_new(0);
  spng_set_png_buffer(context, file.data(), file.size());
  spng_decode_image(context, out.data(), out.size(), SPNG_FMT_RGB8, 0);
  spng_ctx_free(context);
}

void decode_jpeg(const Bytes& file, Bytes& out) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    unsigned char* row =
        out.data() + static_cast<std::size_t>(info.output_scanline) * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const bool png = std::string(argv[1]) == "png";
  const char* const half = std::getenv("PNG");
  const std::string folder = !png ? "photos" : half != nullptr ? half : "png_photos";
  const auto files =
      load(std::string(argv[2]) + "/" + folder, png ? ".png" : ".jpg", png ? 4000 : 500);
  const int threads = std::atoi(argv[3]);  // NOLINT: a number
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    std::vector<penstock::Thread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back("reference", [&] {
        Bytes out(std::size_t{1} << 24);
        for (const Bytes& file : files) png ? decode_png(file, out) : decode_jpeg(file, out);
      });
    for (penstock::Thread& worker : workers) worker.join();
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, threads * static_cast<double>(files.size()) / took);
  }
  fmt::print("{{\"reference\": \"{}\", \"threads\": {}, \"items_per_s\": {:.1f}}}\n", argv[1],
             threads, best);
  return 0;
}
