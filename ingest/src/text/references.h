// SPDX-License-Identifier: Apache-2.0
// References: print formats of several kernels that text is read back by, and
// the choice between them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/print_template.h"

namespace wbscope {

// One format file. It is compiled when its event is first seen.
class Reference {
 public:
  Reference(std::string kernel, bool by_hand, std::string system, std::string name,
            std::string text)
      : kernel_(std::move(kernel)),
        by_hand_(by_hand),
        system_(std::move(system)),
        name_(std::move(name)),
        text_(std::move(text)) {}

  [[nodiscard]] const std::string& kernel() const noexcept { return kernel_; }
  [[nodiscard]] bool by_hand() const noexcept { return by_hand_; }
  [[nodiscard]] const std::string& system() const noexcept { return system_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  // Nothing when the text is no format.
  [[nodiscard]] const PrintTemplate* print() const;
  // What ends a record that is printed raw, field by field.
  struct LastField {
    std::string_view name;  // "" when the text has no fields
    bool is_text = false;   // its value may be empty
  };
  [[nodiscard]] LastField last_field() const;

 private:
  std::string kernel_;
  bool by_hand_;
  std::string system_;
  std::string name_;
  std::string text_;
  mutable bool compiled_ = false;
  mutable std::optional<PrintTemplate> print_;
};

class References {
 public:
  References() = default;
  // The content of a --formats file: format texts, each after a line
  // "# kernel NAME" (or "# text NAME" for one that was written by hand for a
  // printer other than the kernel) and a line "# system NAME"; both stay in
  // force until the next such line.
  explicit References(std::string_view formats);

  // All references of an event, the newest kernel first. system "" is any.
  [[nodiscard]] std::vector<const Reference*> find(std::string_view system,
                                                   std::string_view name) const;
  // Names of events of a system.
  [[nodiscard]] std::vector<std::string> names_of(std::string_view system) const;

 private:
  void add(std::string kernel, bool by_hand, std::string system, std::string_view text);

  std::unordered_map<std::string, std::vector<std::unique_ptr<Reference>>> by_name_;
};

}  // namespace wbscope
