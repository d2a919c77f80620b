// Guard: converts LibTorch's exceptions to Status.
#include "frontend/guard.h"

#include "llvm/ADT/StringRef.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>

namespace cgc::frontend {
namespace {

/// Returns the cause in one line. LibTorch puts a trace of TorchScript frames before it, when it
/// was running a method, and C++ frames after it.
std::string causeOf(llvm::StringRef text) {
  constexpr llvm::StringRef marker = "RuntimeError: ";
  if (size_t at = text.rfind(marker); at != llvm::StringRef::npos)
    text = text.drop_front(at + marker.size());
  text = text.ltrim().split('\n').first.trim();
  // Advice that LibTorch adds for its own users.
  for (llvm::StringRef advice :
       {" This is an internal miniz error.", "  (Could this error message"})
    text = text.split(advice).first;
  return text.empty() ? "LibTorch gave no reason" : text.str();
}

} // namespace

Status guarded(Code code, llvm::function_ref<Status()> fn) {
  try {
    return fn();
  } catch (const c10::OutOfMemoryError &error) {
    return Status(Code::OutOfMemory, causeOf(error.what_without_backtrace()));
  } catch (const c10::AcceleratorError &error) {
    return Status(Code::Device, causeOf(error.what_without_backtrace()));
  } catch (const c10::Error &error) {
    const std::string cause = causeOf(error.what_without_backtrace());
    // LibTorch's CPU allocator throws no error type of its own.
    const bool outOfMemory = cause.find("can't allocate memory") != std::string::npos;
    return Status(outOfMemory ? Code::OutOfMemory : code, cause);
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "not enough host memory");
  } catch (const std::exception &error) {
    return Status(code, causeOf(error.what()));
  }
}

} // namespace cgc::frontend
