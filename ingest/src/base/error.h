// SPDX-License-Identifier: Apache-2.0
// The errors of the program: what was found, what was wanted, where, and a fix.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace wbscope {

// Exit codes, the same for every wbscope program.
enum class Exit : int {
  kDone = 0,
  kUsage = 2,
  kInput = 3,
  kEnvironment = 5,
  kBug = 70,
  kInterrupted = 130,
};

// One message to the user. Empty parts are left out when it is printed.
struct Message {
  std::string slug;
  std::string object;
  std::string text;
  std::string at;
  std::string have;
  std::string effect;
  std::string fix;
};

// Base of all errors; caught once, in main.cc.
class Error : public std::exception {
 public:
  Error(Exit exit_code, Message message)
      : exit_code_(exit_code), message_(std::move(message)) {}

  [[nodiscard]] const char* what() const noexcept override { return message_.text.c_str(); }
  [[nodiscard]] Exit exit_code() const noexcept { return exit_code_; }
  [[nodiscard]] const Message& message() const noexcept { return message_; }
  [[nodiscard]] Message& message() noexcept { return message_; }

 private:
  Exit exit_code_;
  Message message_;
};

// Damage in an input that ends the reading of a file, section or CPU.
class ParseError : public Error {
 public:
  ParseError(std::string code, std::string section, std::uint64_t offset, std::string detail,
             std::optional<std::uint32_t> cpu = std::nullopt)
      : Error(Exit::kInput, {.slug = std::move(code),
                             .object = {},
                             .text = std::move(detail),
                             .at = place(section, offset, cpu),
                             .have = {},
                             .effect = {},
                             .fix = {}}) {}

  [[nodiscard]] static std::string place(const std::string& section, std::uint64_t offset,
                                         std::optional<std::uint32_t> cpu);
};

// Throws an Error for a failed system call (exit 5).
[[noreturn]] void throw_system_error(const std::string& slug, const std::string& object,
                                     const std::string& action, int error_number,
                                     const std::string& fix);

}  // namespace wbscope
