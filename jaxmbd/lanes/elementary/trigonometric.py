"""Sine, cosine and tangent, and their inverses.

The argument is reduced to r = x − n π/2, |r| ≤ π/4, by Cody and Waite's method (Software Manual
for the Elementary Functions, 1980): π/2 is a sum of three floats P₁ + P₂ + P₃. With fused
multiply-add x − n P₁ is exact, since it is a multiple of P₁'s last bit and below 1, so that r has
one rounding, however close x is to a multiple of π/2. That holds up to |x| = `LIMITS`; beyond,
`payne_hanek` is used.

The sine is computed from |x| and gets the sign of x at the end, which keeps the sign of zero.

Huge arguments are reduced modulo π/2 after Payne and Hanek (SIGNUM Newsletter 18, 1983): x = m 2ˢ
with an integer m. Those leading bits of 2/π whose product with 2ˢ is a multiple of 4 do not matter;
the 192 bits after them, W, give x·(2/π) mod 4 = 4·(m W mod 2¹⁹²)/2¹⁹², whose first two bits are the
quadrant and the next 126 the fraction. No double is closer to a multiple of π/2 than 2⁻⁶², so at
least 64 bits of the fraction are significant.

The inverse functions are odd polynomials after reduction of the argument: asin and acos use asin a
= π/2 − 2 asin √((1 − a)/2) above 1/2, with a correction for the rounding error of the square root;
atan2 divides the smaller coordinate by the larger one.
"""

from __future__ import annotations

from jaxmbd.lanes.elementary.body import (
    Value,
    as_float,
    copysign,
    difference,
    flip,
    fma,
    format_of,
    horner,
    magnitude,
    odd,
    pattern,
    resized,
    sign_bit,
    sqrt,
    two_product,
    two_sum,
    where,
)
from jaxmbd.lanes.elementary.coefficients import (
    ARCSINE,
    ARCTANGENT,
    COSINE,
    PI,
    SINE,
    nearest,
    parts,
    words_of_two_over_pi,
)

PADDING = 64  # zero bits ahead of 2/π, for the smallest arguments
WORDS = 20
"""64-bit words of 2/π (padding included): enough for the window of the largest double."""


def reduce_huge(x: Value) -> tuple[Value, Value, Value]:
    """`payne_hanek` lane by lane, for floats of either format."""
    r, rest, q = x.body.each_lane("payne_hanek", resized(x, 64), ("f64", "f64", "i64"))
    if x.bits == 32:
        high = resized(r, 32)
        return high, resized(r - resized(high, 64), 32), resized(q, 32)
    return r, rest, q


def payne_hanek(x: Value) -> tuple[Value, Value, Value]:
    """Remainder r, its rounding error and quadrant of a double x ≥ 2¹⁷; NaN if not finite."""
    form = format_of(x)
    bits = pattern(x)
    exponent = bits >> form.digits
    m = bits & (1 << form.digits) - 1 | 1 << form.digits
    s = exponent - (form.bias + form.digits)
    offset = s + (PADDING - 2)
    offset = where(offset < 0, 0, offset)  # small arguments, whose result is not used
    w2, w1, w0 = _window(offset)
    m, product = resized(m, 128), resized(m * w2, 128) << 64
    turn = m * resized(w1, 128) + product + (m * resized(w0, 128) >> 64)

    q = (turn + (1 << 125)) >> 126
    fraction = turn - (q << 126)
    negative = fraction < 0
    fraction = where(negative, -fraction, fraction)
    r, rest = _times_half_pi(fraction)
    r = where(negative, -r, r) + (x - x)  # NaN for infinity
    return r, where(negative, -rest, rest), resized(q, 64)


def _window(offset: Value) -> tuple[Value, Value, Value]:
    """192 bits of 2/π from a bit offset, as three words, the most significant first."""
    body = offset.body
    words = words_of_two_over_pi(PADDING, WORDS)
    table = body.table("two_over_pi", words)
    first, shift = offset >> 6, offset & 63
    word = [body.load(table, first + index) for index in range(4)]
    w2, w1, w0 = (
        body.intrinsic("fshl", high, low, shift) for high, low in zip(word, word[1:], strict=False)
    )
    return w2, w1, w0


def _times_half_pi(fraction: Value) -> tuple[Value, Value]:
    """fraction·2⁻¹²⁶·π/2 for 0 ≤ fraction < 2¹²⁶, from three parts of 43 bits."""
    mask = (1 << 43) - 1
    low, middle, top = (
        as_float(resized(fraction >> 43 * index & mask, 64), "f64") for index in range(3)
    )
    high, rest = two_sum(top * 2.0**-40, middle * 2.0**-83)
    rest = fma(low, 2.0**-126, rest)
    p1, p2 = parts(PI / 2, 2, 64)
    product, error = two_product(high, high.constant(p1))
    return two_sum(product, fma(high, p2, fma(rest, p1, error)))


LIMITS = {64: 2.0**30, 32: 2.0**17}


def sincos(x: Value) -> tuple[Value, Value]:
    """Sine and cosine."""
    r, q = _reduced(magnitude(x))
    s, c = _sine(r), _cosine(r)
    swap = odd(q)
    return (
        flip(where(swap, c, s), _sine_sign(x, q)),
        flip(where(swap, s, c), _cosine_sign(q)),
    )


def sin(x: Value) -> Value:
    """Sine."""
    r, q = _reduced(magnitude(x))
    return flip(where(odd(q), _cosine(r), _sine(r)), _sine_sign(x, q))


def cos(x: Value) -> Value:
    """Cosine."""
    r, q = _reduced(magnitude(x))
    return flip(where(odd(q), _sine(r), _cosine(r)), _cosine_sign(q))


def tan(x: Value) -> Value:
    """Tangent, s/c or −c/s, of r and its rounding error."""
    r, rest, q = _reduced_to_two(magnitude(x))
    z, error = two_product(r, r)
    s = r + fma(horner(z, SINE[r.bits]) * z, r, rest)
    half = 0.5 * z
    c, lost = two_sum(r.constant(1.0), -half)
    lost = fma(error, -0.5, fma(-r, rest, lost))
    c = c + fma(horner(z, COSINE[r.bits]), z * z, lost)
    swap = odd(q)
    quotient = where(swap, c, s) / where(swap, s, c)
    return flip(quotient, sign_bit(pattern(x) ^ q << (x.bits - 1)))


def _reduced(x: Value) -> tuple[Value, Value]:
    """Remainder r of x ≥ 0, x = n π/2 + r, and an integer q with the two lowest bits of n."""
    n, q, (p1, p2, p3) = _quarters(x)
    r = fma(n, -p3, fma(n, -p2, fma(n, -p1, x)))
    huge = x > LIMITS[x.bits]

    def rare() -> tuple[Value, ...]:
        exact, _, quadrant = x.body.call("reduce_huge", [x], (x.kind, x.kind, q.kind))
        return where(huge, exact, r), where(huge, quadrant, q)

    r, q = x.body.rarely(huge, rare, (r, q))
    return r, q


def _reduced_to_two(x: Value) -> tuple[Value, Value, Value]:
    """As `_reduced`, but r and its rounding error."""
    n, q, (p1, p2, p3) = _quarters(x)
    first = fma(n, -p1, x)
    product, product_error = two_product(n, n.constant(p2))
    r, error = difference(first, product)
    r, rest = two_sum(r, fma(n, -p3, error - product_error))
    huge = x > LIMITS[x.bits]

    def rare() -> tuple[Value, ...]:
        exact = x.body.call("reduce_huge", [x], (x.kind, x.kind, q.kind))
        return tuple(where(huge, e, v) for e, v in zip(exact, (r, rest, q), strict=True))

    r, rest, q = x.body.rarely(huge, rare, (r, rest, q))
    return r, rest, q


def _quarters(x: Value) -> tuple[Value, Value, tuple[float, ...]]:
    """The integer n = round(2x/π), as a float and in the low bits of an integer; parts of π/2."""
    magic = format_of(x).magic
    t = fma(x, nearest(2 / PI, x.bits), magic)
    return t - magic, pattern(t), parts(PI / 2, 3, x.bits)


def _sine(r: Value) -> Value:
    """Sine r + r³ P(r²) of |r| ≤ π/4."""
    z = r * r
    return fma(horner(z, SINE[r.bits]) * z, r, r)


def _cosine(r: Value) -> Value:
    """Cosine (1 − r²/2) + r⁴ P(r²) of |r| ≤ π/4."""
    z = r * r
    return fma(horner(z, COSINE[r.bits]), z * z, fma(-0.5, z, 1.0))


def _sine_sign(x: Value, q: Value) -> Value:
    """Negative in quadrants 2 and 3, where the second bit of q is set; times the sign of x."""
    return sign_bit(q << (x.bits - 2) ^ pattern(x))


def _cosine_sign(q: Value) -> Value:
    """Negative in quadrants 1 and 2."""
    return sign_bit((q + 1) << (q.bits - 2))


def asin(x: Value) -> Value:
    """Inverse sine; NaN beyond ±1."""
    a = magnitude(x)
    near, s, rest = _arcsine_parts(a)
    quarter, quarter_rest = parts(PI / 2, 2, x.bits)
    far, error = two_sum(x.constant(quarter), -2.0 * s)
    far = far + (error - fma(rest, 2.0, -quarter_rest))
    return copysign(where(near, s + rest, far), x)


def acos(x: Value) -> Value:
    """Inverse cosine; NaN beyond ±1."""
    near, s, rest = _arcsine_parts(magnitude(x))
    sign = sign_bit(x)
    s, rest = flip(s, sign), flip(rest, sign)
    quarter, quarter_rest = parts(PI / 2, 2, x.bits)
    middle = quarter - (s + (rest - quarter_rest))
    # for x < 0: π − 2 asin √((1 − a)/2), by the signs of s and rest
    base = where(x < 0.0, x.constant(2.0 * quarter), 0.0)
    base_rest = where(x < 0.0, x.constant(2.0 * quarter_rest), 0.0)
    outer = base + (2.0 * s + fma(rest, 2.0, base_rest))
    return where(near, middle, outer)


def atan(x: Value) -> Value:
    """Inverse tangent."""
    a = magnitude(x)
    steep = a > 1.0
    t = where(steep, 1.0 / a, a)
    return copysign(_arctangent(t, steep, None), x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with the special values of C's atan2."""
    a, b = magnitude(y), magnitude(x)
    steep = a > b
    low, high = where(steep, b, a), where(steep, a, b)
    t = where(low.equals(high), 1.0, low / high)  # also where both are infinite
    t = where(high.equals(0.0), low, t)
    return copysign(_arctangent(t, steep, x), y)


def _arcsine_parts(a: Value) -> tuple[Value, Value, Value]:
    """Whether a ≤ 1/2, and s, rest with s + rest = asin a there, else asin √((1 − a)/2)."""
    near = a <= 0.5
    z = where(near, a * a, 0.5 - 0.5 * a)
    root = sqrt(z)
    # the smallest normal number avoids 0/0
    error = fma(-root, root, z) / (2.0 * root + format_of(a).smallest)
    s = where(near, a, root)
    rest = fma(s * z, horner(z, ARCSINE[z.bits]), where(near, 0.0, error))
    return near, s, rest


def _arctangent(t: Value, steep: Value, x: Value | None) -> Value:
    """Arctangent of 0 ≤ t ≤ 1; where `steep`, π/2 minus that; where x < 0, π minus the result.

    The upper part of the polynomial is split into even and odd powers, which run in parallel.
    """
    quarter, rest = parts(PI / 2, 2, t.bits)
    sign = where(steep, pattern(t.constant(-0.0)), pattern(t.constant(0.0)))
    base = t.constant(0.0)
    if x is not None:
        left = sign_bit(x)
        sign = sign ^ left
        base = where(left < 0, t.constant(2.0 * quarter), base)
    base = where(steep, t.constant(quarter), base)

    z = t * t
    square = z * z
    lower, upper = ARCTANGENT[t.bits][:4], ARCTANGENT[t.bits][4:]
    p = fma(horner(square, upper[1::2]), z, horner(square, upper[::2]))
    p = horner(z, (*lower, p))
    t = flip(t, sign)
    return (base + t) + fma(p * z, t, base * (rest / quarter))
