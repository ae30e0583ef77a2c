// SPDX-License-Identifier: Apache-2.0
// OutputFile: a file that appears under its name only when it is whole.
#pragma once

#include <string>

namespace wbscope {

// Work goes into temp_path(), ".NAME.PID.part" in the directory of the target
// (with a short name in the place of a long NAME).
// commit() makes it durable and renames it; without commit() it is removed.
//
// The temporary file is locked (flock) for as long as its writer lives, on
// whatever machine. What a killed writer left behind has no lock, so the next
// run with the same target removes it. Where locks do not work, nothing is
// taken for left behind.
class OutputFile {
 public:
  // Raises: Error (exit 2) when path exists and not force; Error (exit 5) when
  // the directory cannot be written.
  OutputFile(std::string path, bool force);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& temp_path() const noexcept { return temp_path_; }
  void commit();

 private:
  void make_temp_file();

  std::string path_;
  std::string temp_path_;
  bool force_;
  int fd_ = -1;  // of temp_path_; holds the lock
};

}  // namespace wbscope
