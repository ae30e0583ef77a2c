// SPDX-License-Identifier: Apache-2.0
// The job "records": stream -> tables, with the atomic output of every job.
#include "records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "base/input_file.h"
#include "base/interrupt.h"
#include "records/record_stream.h"
#include "run_file.h"
#include "run_folder.h"

namespace wbscope {
namespace {

// Stdin, or a file that holds a stream.
class StreamInput {
 public:
  explicit StreamInput(const std::string& name) : name_(name) {
    // May wait for the writer of a FIFO, which is what a stream is for.
    while (name != "-" && (fd_ = ::open(name.c_str(), O_RDONLY | O_CLOEXEC)) < 0 &&
           errno == EINTR) {
      throw_if_interrupted();
    }
    if (fd_ < 0) {
      throw_system_error("unreadable", name, "cannot be opened", errno, "ls -l " + name);
    }
  }
  ~StreamInput() {
    if (fd_ > STDIN_FILENO) ::close(fd_);
  }
  StreamInput(const StreamInput&) = delete;
  StreamInput& operator=(const StreamInput&) = delete;

  // As many bytes as there are, up to the size of out.
  [[nodiscard]] std::size_t read(std::span<std::byte> out) const {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::read(fd_, out.data() + done, out.size() - done);
      if (got == 0) break;
      if (got > 0) {
        done += static_cast<std::size_t>(got);
        continue;
      }
      const int error = errno;
      throw_if_interrupted();
      if (error != EINTR) {
        throw_system_error("unreadable", name_, "cannot be read", error, "run the command again");
      }
    }
    return done;
  }

 private:
  std::string name_;
  int fd_ = STDIN_FILENO;
};

void warn_of_damage(const Reporter& reporter, const std::string& object,
                    const RecordLoader& loader) {
  if (loader.damage().empty()) return;
  reporter.warning({.slug = "damaged-trace",
                    .object = object,
                    .text = loader.damage(),
                    .at = {},
                    .have = {},
                    .effect = std::to_string(loader.counted()) +
                              " events before or beside the damage were read; meta.damaged is 1",
                    .fix = "record or copy the trace again"});
}

}  // namespace

void load_records(const RecordsOptions& options, const Reporter& reporter) {
  if (!options.folder.empty()) check_run_folder(options.folder);
  const StreamInput input(options.stream);
  const InputFile trace(options.trace);
  RunFile output(options.output, options.force, trace, options.no_unpack_limit);
  RunWriter run(output.db());
  RecordLoader loader(output.db(), run, options.plan.previous, options.plan.indexes);
  std::future<std::string> hash =
      std::async(std::launch::async, [&trace] { return trace.hash(); });
  try {
    loader.load([&input](std::span<std::byte> out) { return input.read(out); },
                [] { throw_if_interrupted(); });
  } catch (ParseError& error) {
    error.message().object = options.stream;
    error.message().effect = "nothing was written";
    error.message().fix = "the program that wrote the stream ended early or has a bug";
    throw;
  }
  loader.finish();
  run.source(trace, hash.get());

  const std::vector<Message> warnings = output.finish(options.folder);
  warn_of_damage(reporter, trace.path(), loader);
  for (const auto& warning : warnings) reporter.warning(warning);
  reporter.done(output.path(), loader.counted(), loader.loaded(), !loader.damage().empty());
}

}  // namespace wbscope
