// Translates the engine's errors to Python exceptions: the classes of tutti/errors.py, by code.

#include "core/base/option_text.h"
#include "module.h"
#include "train/run/trainer.h"

namespace tutti::python {
namespace {

const char* class_of(Code code) {
  switch (code) {
    case Code::invalid: return "InvalidError";
    case Code::declined: return "DeclinedError";
    case Code::no_memory: return "NoMemoryError";
    case Code::device_lost: return "DeviceLostError";
    default: return "Error";
  }
}

void raise(const char* name, const Error& e, std::optional<int64_t> step = {}) {
  nb::object type = nb::module_::import_("tutti.errors").attr(name);
  nb::object error = type(e.what(), e.remedy);
  if (step) error.attr("step") = *step;
  if (const auto* wrong = dynamic_cast<const OptionError*>(&e)) error.attr("option") = keyword(wrong->option);
  PyErr_SetObject(type.ptr(), error.ptr());
}

}  // namespace

void bind_errors(nb::module_&) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const NotFinite& e) {
      raise("NotFiniteError", e, e.step);
    } catch (const OutOfRange& e) {
      raise("OutOfRangeError", e);
    } catch (const Error& e) {
      raise(class_of(e.code), e);
    }
  });
}

}  // namespace tutti::python
