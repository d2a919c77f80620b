// host_math: Python arithmetic on ints and floats, with errors instead of overflow.
#include "ir/ops/host_math.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <utility>

namespace cgc::ir::host {
namespace {

Status refuse(std::string message) {
  return Status(Code::Unsupported, std::move(message));
}
Status overflow() {
  return refuse("an int computed from sizes does not fit in 64 bits");
}
Status zeroDivision() {
  return refuse("division of a number by zero");
}
Status notANumber() {
  return refuse("expected a number that is known at compile time");
}

/// An int or a float operand.
struct Number {
  bool isInt = true;
  int64_t integer = 0;
  double real = 0; ///< Also set for an int.
};

Result<Number> number(const Arg &arg) {
  if (const double *d = arg.getIf<double>())
    return Number{false, 0, *d};
  int64_t integer;
  if (const bool *b = arg.getIf<bool>())
    integer = *b;
  else if (const int64_t *i = arg.getIf<int64_t>())
    integer = *i;
  else
    return notANumber();
  return Number{true, integer, static_cast<double>(integer)};
}

Result<std::pair<Number, Number>> operands(const Arg &a, const Arg &b) {
  CGC_ASSIGN_OR_RETURN(Number x, number(a));
  CGC_ASSIGN_OR_RETURN(Number y, number(b));
  return std::pair(x, y);
}

Result<Arg> sum(const Arg &a, const Arg &b) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(a, b));
  const auto &[x, y] = pair;
  if (!x.isInt || !y.isInt)
    return Arg(x.real + y.real);
  int64_t result;
  return __builtin_add_overflow(x.integer, y.integer, &result) ? overflow() : Result<Arg>(result);
}

Result<Arg> difference(const Arg &a, const Arg &b) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(a, b));
  const auto &[x, y] = pair;
  if (!x.isInt || !y.isInt)
    return Arg(x.real - y.real);
  int64_t result;
  return __builtin_sub_overflow(x.integer, y.integer, &result) ? overflow() : Result<Arg>(result);
}

Result<Arg> product(const Arg &a, const Arg &b) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(a, b));
  const auto &[x, y] = pair;
  if (!x.isInt || !y.isInt)
    return Arg(x.real * y.real);
  int64_t result;
  return __builtin_mul_overflow(x.integer, y.integer, &result) ? overflow() : Result<Arg>(result);
}

/// Returns quotient and remainder, rounded down, or towards zero with `truncate`.
Result<std::pair<Arg, Arg>> divide(const Arg &a, const Arg &b, bool truncate) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(a, b));
  const auto &[x, y] = pair;
  if (y.real == 0)
    return zeroDivision();
  if (x.isInt && y.isInt) {
    if (y.integer == -1) { // Only this divisor can overflow the quotient.
      CGC_ASSIGN_OR_RETURN(Arg quotient, difference(0, a));
      return std::pair(std::move(quotient), Arg(0));
    }
    int64_t quotient = x.integer / y.integer, remainder = x.integer % y.integer;
    if (!truncate && remainder != 0 && (remainder < 0) != (y.integer < 0)) {
      --quotient;
      remainder += y.integer;
    }
    return std::pair(Arg(quotient), Arg(remainder));
  }
  double remainder = std::fmod(x.real, y.real);
  if (!truncate && remainder != 0 && (remainder < 0) != (y.real < 0))
    remainder += y.real;
  return std::pair(Arg(std::round((x.real - remainder) / y.real)), Arg(remainder));
}

enum class Order { Less, Equal, Greater, Unordered };

Result<Order> order(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(args[0], args[1]));
  const auto &[x, y] = pair;
  auto rank = [](auto p, auto q) {
    return p < q ? Order::Less : p > q ? Order::Greater : p == q ? Order::Equal : Order::Unordered;
  };
  return x.isInt && y.isInt ? rank(x.integer, y.integer) : rank(x.real, y.real);
}

/// Returns two int or bool operands as ints.
Result<std::pair<int64_t, int64_t>> intOperands(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(args[0], args[1]));
  const auto &[x, y] = pair;
  if (!x.isInt || !y.isInt)
    return refuse("expected ints or bools, got a float");
  return std::pair(x.integer, y.integer);
}

bool bothBool(llvm::ArrayRef<Arg> args) {
  return args[0].is<bool>() && args[1].is<bool>();
}

/// Returns an int as it is, and another number rounded by `function`. LibTorch may have computed it
/// in f32 or in f64: refuses a number that rounds differently in the two.
Result<Arg> rounded(const Arg &arg, llvm::function_ref<double(double)> function) {
  CGC_ASSIGN_OR_RETURN(Number x, number(arg));
  if (x.isInt)
    return Arg(x.integer);
  const double result = function(x.real), ofF32 = function(static_cast<float>(x.real));
  if (result == ofF32 || std::isnan(result))
    return Arg(result);
  return refuse("a number computed from sizes is " + std::to_string(ofF32) + " in f32 and " +
                std::to_string(result) +
                " in f64 once it is rounded to an integer; compute it with integers");
}

/// Returns the nearest value that a floating dtype has.
double roundedTo(DType dtype, double value) {
  if (dtype == DType::F64)
    return value;
  llvm::APFloat exact(value);
  bool isInexact;
  exact.convert(dtype == DType::F16    ? llvm::APFloat::IEEEhalf()
                : dtype == DType::BF16 ? llvm::APFloat::BFloat()
                                       : llvm::APFloat::IEEEsingle(),
                llvm::APFloat::rmNearestTiesToEven, &isInexact);
  return exact.convertToDouble();
}

/// Returns the exact power of ints by repeated squaring; `exponent` is not negative.
Result<Arg> intPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result))
      return overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base))
      return overflow();
  }
  return Arg(result);
}

} // namespace

Result<Arg> add(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Arg scaled, product(args[2], args[1]));
  return sum(args[0], scaled);
}

Result<Arg> sub(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Arg scaled, product(args[2], args[1]));
  return difference(args[0], scaled);
}

Result<Arg> rsub(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Arg scaled, product(args[2], args[0]));
  return difference(args[1], scaled);
}

Result<Arg> mul(llvm::ArrayRef<Arg> args) {
  return product(args[0], args[1]);
}

Result<Arg> div(llvm::ArrayRef<Arg> args) {
  if (const std::string *mode = args[2].getIf<std::string>()) {
    if (*mode != "floor" && *mode != "trunc")
      return refuse("expected 'rounding_mode' to be none, \"trunc\" or \"floor\", got \"" + *mode +
                    "\"");
    CGC_ASSIGN_OR_RETURN(auto parts, divide(args[0], args[1], *mode == "trunc"));
    return parts.first;
  }
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(args[0], args[1]));
  const auto &[x, y] = pair;
  return y.real == 0 ? zeroDivision() : Result<Arg>(Arg(x.real / y.real));
}

Result<Arg> floorDivide(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(auto parts, divide(args[0], args[1], /*truncate=*/false));
  return parts.first;
}

Result<Arg> remainder(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(auto parts, divide(args[0], args[1], /*truncate=*/false));
  return parts.second;
}

Result<Arg> pow(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const auto pair, operands(args[0], args[1]));
  const auto &[x, y] = pair;
  if (x.isInt && y.isInt && y.integer >= 0)
    return intPower(x.integer, y.integer);
  if (x.real == 0 && y.real < 0)
    return zeroDivision();
  double result = std::pow(x.real, y.real);
  if (!std::isfinite(result) && std::isfinite(x.real) && std::isfinite(y.real))
    return refuse("the power of two numbers has no finite value");
  return Arg(result);
}

Result<Arg> neg(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return x.isInt ? difference(0, args[0]) : Result<Arg>(Arg(-x.real));
}

Result<Arg> ceil(llvm::ArrayRef<Arg> args) {
  return rounded(args[0], [](double x) { return std::ceil(x); });
}

Result<Arg> floor(llvm::ArrayRef<Arg> args) {
  return rounded(args[0], [](double x) { return std::floor(x); });
}

Result<Arg> trunc(llvm::ArrayRef<Arg> args) {
  return rounded(args[0], [](double x) { return std::trunc(x); });
}

Result<Arg> round(llvm::ArrayRef<Arg> args) {
  return rounded(args[0], [](double x) { return std::nearbyint(x); });
}

Result<Arg> sqrt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return Arg(std::sqrt(x.real));
}

Result<Arg> identity(llvm::ArrayRef<Arg> args) {
  CGC_TRY(number(args[0]).status());
  return args[0];
}

Result<Arg> to(llvm::ArrayRef<Arg> args) {
  const DType *dtype = args[1].getIf<DType>();
  if (!dtype)
    return args[0];
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  if (*dtype == DType::Bool)
    return Arg(x.real != 0);
  if (isFloating(*dtype))
    return Arg(roundedTo(*dtype, x.real));
  CGC_ASSIGN_OR_RETURN(const Arg whole, trunc(args));
  CGC_ASSIGN_OR_RETURN(Arg integer, toInt({whole}));
  const int64_t value = integer.as<int64_t>();
  const int bits = static_cast<int>(8 * dtypeSize(*dtype));
  const bool fits =
      *dtype == DType::U8 ? llvm::isUIntN(bits, uint64_t(value)) : llvm::isIntN(bits, value);
  return fits
             ? Result<Arg>(integer)
             : refuse(std::to_string(value) + " does not fit in " + std::string(dtypeName(*dtype)));
}

Result<Arg> maximum(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  if (o == Order::Unordered)
    return Arg(std::nan(""));
  return o == Order::Less ? args[1] : args[0];
}

Result<Arg> minimum(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  if (o == Order::Unordered)
    return Arg(std::nan(""));
  return o == Order::Greater ? args[1] : args[0];
}

Result<Arg> clamp(llvm::ArrayRef<Arg> args) {
  Arg result = args[0];
  if (!args[1].isNone()) {
    CGC_ASSIGN_OR_RETURN(result, maximum({result, args[1]}));
  }
  if (!args[2].isNone()) {
    CGC_ASSIGN_OR_RETURN(result, minimum({result, args[2]}));
  }
  return result;
}

Result<Arg> eq(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o == Order::Equal);
}

Result<Arg> ne(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o != Order::Equal);
}

Result<Arg> lt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o == Order::Less);
}

Result<Arg> le(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o == Order::Less || o == Order::Equal);
}

Result<Arg> gt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o == Order::Greater);
}

Result<Arg> ge(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Order o, order(args));
  return Arg(o == Order::Greater || o == Order::Equal);
}

Result<Arg> bitwiseAnd(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const auto pair, intOperands(args));
  const auto &[x, y] = pair;
  return bothBool(args) ? Arg((x & y) != 0) : Arg(x & y);
}

Result<Arg> bitwiseOr(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(const auto pair, intOperands(args));
  const auto &[x, y] = pair;
  return bothBool(args) ? Arg((x | y) != 0) : Arg(x | y);
}

Result<Arg> bitwiseNot(llvm::ArrayRef<Arg> args) {
  if (const bool *b = args[0].getIf<bool>())
    return Arg(!*b);
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return x.isInt ? Result<Arg>(Arg(~x.integer)) : refuse("expected an int or bool, got a float");
}

Result<Arg> toInt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  if (x.isInt)
    return Arg(x.integer);
  constexpr double bound = 9223372036854775808.0; // 2^63
  if (!(x.real >= -bound && x.real < bound))
    return overflow();
  return Arg(static_cast<int64_t>(x.real));
}

Result<Arg> floorToInt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return x.isInt ? Result<Arg>(x.integer) : toInt({Arg(std::floor(x.real))});
}

Result<Arg> ceilToInt(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return x.isInt ? Result<Arg>(x.integer) : toInt({Arg(std::ceil(x.real))});
}

Result<Arg> toFloat(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return Arg(x.real);
}

Result<Arg> toBool(llvm::ArrayRef<Arg> args) {
  CGC_ASSIGN_OR_RETURN(Number x, number(args[0]));
  return Arg(x.real != 0);
}

} // namespace cgc::ir::host
