// SPDX-License-Identifier: Apache-2.0
// Print formats turned round, from libtraceevent's parse of them.
#include "format/print_template.h"

#include <traceevent/event-parse.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdlib>

#include "format/tep_handle.h"

namespace wbscope {
namespace {

constexpr int kMaxDepth = 64;

const tep_print_arg* without_casts(const tep_print_arg* arg) {
  for (int depth = 0; arg != nullptr && arg->type == TEP_PRINT_TYPE && depth < kMaxDepth; ++depth) {
    arg = arg->typecast.item;
  }
  return arg;
}

std::optional<std::uint64_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 0);
  if (end == text) return std::nullopt;
  return value;
}

// The value of an expression without fields.
std::optional<std::uint64_t> constant(const tep_print_arg* arg, int depth = 0) {
  arg = without_casts(arg);
  if (arg == nullptr || depth > kMaxDepth) return std::nullopt;
  if (arg->type == TEP_PRINT_ATOM) return number_of(arg->atom.atom);
  if (arg->type != TEP_PRINT_OP || arg->op.left == nullptr) return std::nullopt;
  const auto left = constant(arg->op.left, depth + 1);
  const auto right = constant(arg->op.right, depth + 1);
  if (!left || !right) return std::nullopt;
  const std::string_view op = arg->op.op;
  if (op == "|") return *left | *right;
  if (op == "&") return *left & *right;
  if (op == "+") return *left + *right;
  if (op == "-") return *left - *right;
  if (op == "*") return *left * *right;
  if (op == "<<" && *right < 64) return *left << *right;
  if (op == ">>" && *right < 64) return *left >> *right;
  return std::nullopt;
}

class Compiler {
 public:
  explicit Compiler(PrintTemplate& out) : out_(out) {}

  void compile(const char* format, const tep_print_arg* args);
  void keep_defined_fields();

 private:
  std::int32_t field_index(const char* name) const {
    for (std::size_t i = 0; name != nullptr && i < out_.fields.size(); ++i) {
      if (out_.fields[i].name == name) return static_cast<std::int32_t>(i);
    }
    return -1;
  }
  PrintArg text_field(const char* name) const;
  void place(const tep_print_arg* arg, PrintArg& out, int depth) const;
  PrintArg number(const tep_print_arg* arg, std::uint32_t base) const;
  PrintArg labelled(PrintArg::Kind kind, const tep_print_arg* value,
                    const tep_print_flag_sym* symbols, const char* delim) const;
  PrintArg choice(const tep_print_arg* arg, int depth) const;
  PrintArg string(const tep_print_arg* arg, int depth) const;
  void literal(char c);
  void add(PrintArg arg);

  PrintTemplate& out_;
};

// The field in an expression that can be turned round: casts, field >> n,
// field & mask. The parts of a field that several arguments print are ORed.
void Compiler::place(const tep_print_arg* arg, PrintArg& out, int depth) const {
  arg = without_casts(arg);
  if (arg == nullptr || depth > kMaxDepth) return;
  if (arg->type == TEP_PRINT_FIELD) {
    out.field = field_index(arg->field.name);
    return;
  }
  if (arg->type != TEP_PRINT_OP || arg->op.left == nullptr) return;
  const auto right = constant(arg->op.right);
  const std::string_view op = arg->op.op;
  if (!right) return;
  if (op == ">>" && *right < 64) {
    place(arg->op.left, out, depth + 1);
    out.shift += static_cast<std::uint32_t>(*right);
    if (out.shift >= 64) out.field = -1;
  } else if (op == "&") {
    place(arg->op.left, out, depth + 1);
  }
}

PrintArg Compiler::number(const tep_print_arg* arg, std::uint32_t base) const {
  PrintArg out;
  out.kind = PrintArg::Kind::kNumber;
  out.base = base;
  place(arg, out, 0);
  const bool is_integer =
      out.field >= 0 &&
      out_.fields[static_cast<std::size_t>(out.field)].kind == FieldKind::kInteger;
  if (!is_integer) out.field = -1;
  return out;
}

PrintArg Compiler::text_field(const char* name) const {
  PrintArg out;
  out.field = field_index(name);
  if (out.field < 0) return out;
  switch (out_.fields[static_cast<std::size_t>(out.field)].kind) {
    case FieldKind::kText:
    case FieldKind::kRestText:
    case FieldKind::kDynText:
    case FieldKind::kRelText:
      break;
    default:
      out.field = -1;  // a pointer to text that is elsewhere
  }
  return out;
}

PrintArg Compiler::labelled(PrintArg::Kind kind, const tep_print_arg* value,
                            const tep_print_flag_sym* symbols, const char* delim) const {
  PrintArg out = number(value, 16);
  out.kind = kind;
  out.text = delim == nullptr ? "" : delim;
  for (const auto* symbol = symbols; symbol != nullptr; symbol = symbol->next) {
    if (symbol->str == nullptr || *symbol->str == '\0') continue;
    const auto known = unresolved_value(symbol->str);
    out.labels.push_back({.text = symbol->str, .value = known ? known : number_of(symbol->value)});
  }
  std::stable_sort(out.labels.begin(), out.labels.end(), [](const auto& a, const auto& b) {
    return a.text.size() > b.text.size();
  });
  return out;
}

// condition ? a : b, of which a constant branch tells the condition.
PrintArg Compiler::choice(const tep_print_arg* arg, int depth) const {
  PrintArg out;
  out.kind = PrintArg::Kind::kChoice;
  PrintArg condition;
  const auto* test = without_casts(arg->op.left);
  place(test, condition, 0);
  if (condition.shift != 0) condition.field = -1;
  const bool masked = test != nullptr && test->type == TEP_PRINT_OP;
  const std::uint64_t bits = masked ? constant(test->op.right).value_or(0) : 0;
  const bool is_bool =
      condition.field >= 0 &&
      out_.fields[static_cast<std::size_t>(condition.field)].bytes == 1 && !masked;
  const tep_print_arg* branches = arg->op.right;
  if (branches == nullptr || branches->type != TEP_PRINT_OP) return PrintArg{};
  for (const bool taken : {true, false}) {
    PrintArg branch = string(taken ? branches->op.left : branches->op.right, depth + 1);
    if (branch.kind == PrintArg::Kind::kConstant) {
      branch.field = condition.field;
      branch.whole = !masked;
      if (!taken) {
        branch.value = 0;
      } else if (is_bool) {
        branch.value = 1;
      } else if (std::has_single_bit(bits)) {
        branch.value = bits;
      }
    }
    out.choices.push_back(std::move(branch));
  }
  // The longer constant first: "" matches everywhere.
  std::stable_sort(out.choices.begin(), out.choices.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const PrintArg& x) {
      return x.kind == PrintArg::Kind::kConstant ? x.text.size() + 1 : 0;
    };
    return rank(a) > rank(b);
  });
  return out;
}

PrintArg Compiler::string(const tep_print_arg* arg, int depth) const {
  arg = without_casts(arg);
  if (arg == nullptr || depth > kMaxDepth) return {};
  switch (arg->type) {
    case TEP_PRINT_FIELD:
      return text_field(arg->field.name);
    case TEP_PRINT_STRING:
    case TEP_PRINT_BSTRING:
      return text_field(arg->string.string);
    case TEP_PRINT_DYNAMIC_ARRAY:
      return text_field(arg->dynarray.field == nullptr ? nullptr : arg->dynarray.field->name);
    case TEP_PRINT_FLAGS:
      return labelled(PrintArg::Kind::kFlags, arg->flags.field, arg->flags.flags,
                      arg->flags.delim);
    case TEP_PRINT_SYMBOL:
      return labelled(PrintArg::Kind::kSymbol, arg->symbol.field, arg->symbol.symbols, nullptr);
    case TEP_PRINT_ATOM: {
      PrintArg out;
      out.kind = PrintArg::Kind::kConstant;
      out.text = arg->atom.atom == nullptr ? "" : arg->atom.atom;
      return out;
    }
    case TEP_PRINT_OP:
      if (std::string_view(arg->op.op) == "?") return choice(arg, depth);
      return {};
    default:
      return {};
  }
}

void Compiler::literal(char c) {
  if (out_.pieces.empty() || out_.pieces.back().arg) out_.pieces.emplace_back();
  std::string& text = out_.pieces.back().literal;
  const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
  if (!blank) {
    text += c;
  } else if (!text.ends_with(' ')) {
    text += ' ';
  }
}

void Compiler::add(PrintArg arg) { out_.pieces.push_back({.arg = std::move(arg), .literal = {}}); }

void Compiler::compile(const char* format, const tep_print_arg* args) {
  const auto next = [&args] {
    const tep_print_arg* arg = args;
    if (args != nullptr) args = args->next;
    return arg;
  };
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at == '\\' && at[1] != '\0') {
      ++at;
      literal(*at == 'n' || *at == 't' ? ' ' : *at);
      continue;
    }
    if (*at != '%') {
      literal(*at);
      continue;
    }
    if (*++at == '%') {
      literal('%');
      continue;
    }
    for (; *at != '\0' && std::string_view("-+ #0123456789.*hlLqzjt").find(*at) != std::string_view::npos;
         ++at) {
      if (*at == '*') (void)next();
    }
    if (*at == '\0') break;
    switch (*at) {
      case 'd':
      case 'i':
      case 'u':
        add(number(next(), 10));
        break;
      case 'x':
      case 'X':
        add(number(next(), 16));
        break;
      case 'o':
        add(number(next(), 8));
        break;
      case 'p': {
        const bool plain = std::isalnum(static_cast<unsigned char>(at[1])) == 0;
        const tep_print_arg* arg = next();
        add(plain ? number(arg, 16) : PrintArg{});
        while (std::isalnum(static_cast<unsigned char>(at[1])) != 0) ++at;
        break;
      }
      default:
        add(string(next(), 0));
    }
  }
}

// One bit does not make a field: what only says "bit 3 is set" is left out
// unless another argument prints the field.
void Compiler::keep_defined_fields() {
  std::vector<bool> defined(out_.fields.size());
  const auto visit = [&](auto&& self, PrintArg& arg, bool drop) -> void {
    for (auto& option : arg.choices) self(self, option, drop);
    if (arg.field < 0) return;
    const auto field = static_cast<std::size_t>(arg.field);
    if (drop) {
      if (!defined[field]) arg.field = -1;
    } else if (arg.kind != PrintArg::Kind::kConstant || (arg.whole && arg.value)) {
      defined[field] = true;
    }
  };
  for (const bool drop : {false, true}) {
    for (auto& piece : out_.pieces) {
      if (piece.arg) visit(visit, *piece.arg, drop);
    }
  }
  out_.invertible =
      static_cast<std::size_t>(std::count(defined.begin(), defined.end(), true));
}

// Kernels 7.1 and later name the lead of the record, which libtraceevent does
// not know; it is the same number as common_pid.
std::string with_known_lead(std::string_view text) {
  std::string out(text);
  constexpr std::string_view kLead = "REC->ent.";
  for (auto at = out.find(kLead); at != std::string::npos; at = out.find(kLead, at)) {
    out.replace(at, kLead.size(), "REC->common_");
  }
  return out;
}

// Functions of print formats that libtraceevent asks its user for. What they
// print has no way back to the field; the rest of the record has.
void declare_functions(tep_handle* tep) {
  const tep_func_handler nothing = [](trace_seq*, unsigned long long*) { return 0ULL; };
  for (std::string name : {"jiffies_to_msecs", "jbd2_dev_to_name"}) {
    tep_register_print_function(tep, nothing, TEP_FUNC_ARG_LONG, name.data(), TEP_FUNC_ARG_LONG,
                                TEP_FUNC_ARG_VOID);
  }
}

}  // namespace

std::optional<PrintTemplate> compile_print_template(std::string_view system,
                                                    std::string_view text) {
  const Tep tep = make_tep();
  declare_functions(tep.get());
  const std::string shown = with_known_lead(text);
  tep_event* event = nullptr;  // owned by tep
  (void)tep_parse_format(tep.get(), &event, shown.c_str(), shown.size(),
                         std::string(system).c_str());
  if (event == nullptr || event->format.nr_fields <= 0) return std::nullopt;
  PrintTemplate out;
  if (!read_fields(*event, out.fields)) return std::nullopt;
  if ((event->flags & TEP_EVENT_FL_FAILED) != 0 || event->print_fmt.format == nullptr) return out;
  out.labels = read_labels(*event);
  Compiler compiler(out);
  compiler.compile(event->print_fmt.format, event->print_fmt.args);
  compiler.keep_defined_fields();
  return out;
}

}  // namespace wbscope
