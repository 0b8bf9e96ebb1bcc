//! Binary floats narrower than `f64`, as bits: binary16, bfloat16, binary32.
//!
//! Holds rounding to and widening from a layout, and the shortest decimal of a value. Must not know JSON.

/// A binary interchange layout: sign, exponent, fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FloatLayout {
    exponent_bits: u32,
    fraction_bits: u32,
}

pub(crate) const BINARY16: FloatLayout = FloatLayout::new(5, 10);
pub(crate) const BFLOAT16: FloatLayout = FloatLayout::new(8, 7);
pub(crate) const BINARY32: FloatLayout = FloatLayout::new(8, 23);
pub(crate) const BINARY64: FloatLayout = FloatLayout::new(11, 52);

#[expect(
    clippy::arithmetic_side_effects,
    reason = "shifts and sums of the four layouts above stay within 64 bits"
)]
impl FloatLayout {
    const fn new(exponent_bits: u32, fraction_bits: u32) -> Self {
        Self {
            exponent_bits,
            fraction_bits,
        }
    }

    /// Bytes of one value.
    pub(crate) fn size(self) -> usize {
        match self.exponent_bits + self.fraction_bits {
            15 => 2,
            31 => 4,
            _ => 8,
        }
    }

    fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    /// Bits of positive infinity.
    pub(crate) fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// Bits of the positive quiet NaN, the one that is written as `"NaN"`.
    pub(crate) fn quiet_nan(self) -> u64 {
        self.infinity() | (1 << (self.fraction_bits - 1))
    }

    /// True for every NaN.
    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign_bit() > self.infinity()
    }

    /// The nearest value, ties to even; a NaN becomes the quiet one.
    pub(crate) fn round(self, value: f64) -> u64 {
        if value.is_nan() {
            return self.quiet_nan();
        }
        if self == BINARY64 {
            return value.to_bits();
        }
        let bits = value.to_bits();
        let sign = if bits >> 63 == 1 { self.sign_bit() } else { 0 };
        let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
        let fraction = bits & ((1 << 52) - 1);
        if exponent == 0x7ff {
            return sign | self.infinity();
        }
        if exponent == 0 {
            // Zero, or far below the smallest value of any narrower layout.
            return sign;
        }
        let bias = (1_i64 << (self.exponent_bits - 1)) - 1;
        let (unbiased, lowest) = (exponent - 1023, 1 - bias);
        let missing = (lowest - unbiased).max(0);
        let shift = i64::from(52 - self.fraction_bits) + missing;
        if shift > 54 {
            return sign;
        }
        let significand = (1 << 52) | fraction;
        let rounded = round_shift(significand, u32::try_from(shift).unwrap_or(0));
        let biased = u64::try_from(unbiased + bias - 1).unwrap_or(0);
        // The hidden bit adds the missing one to the exponent; so does a carry out of the fraction.
        let magnitude = if missing > 0 {
            rounded
        } else {
            (biased << self.fraction_bits) + rounded
        };
        sign | magnitude.min(self.infinity())
    }

    /// The same number as `f64`; exact. Every NaN becomes the quiet one.
    pub(crate) fn widen(self, bits: u64) -> f64 {
        if self.is_nan(bits) {
            return f64::NAN;
        }
        if self == BINARY64 {
            return f64::from_bits(bits);
        }
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & !self.sign_bit();
        let value = if magnitude == self.infinity() {
            f64::INFINITY
        } else {
            let bias = (1_i32 << (self.exponent_bits - 1)) - 1;
            let exponent = i32::try_from(magnitude >> self.fraction_bits).unwrap_or(0);
            let fraction = magnitude & ((1 << self.fraction_bits) - 1);
            let (significand, exponent) = if exponent == 0 {
                (fraction, 1 - bias)
            } else {
                (fraction | (1 << self.fraction_bits), exponent - bias)
            };
            let scale = exponent - i32::try_from(self.fraction_bits).unwrap_or(0);
            #[expect(clippy::cast_precision_loss, reason = "at most 24 bits")]
            let significand = significand as f64;
            // By bits: `exp2` of the standard library promises no exact result. All scales are those of normal numbers.
            let power = u64::try_from(scale + 1023).unwrap_or(0) << 52;
            significand * f64::from_bits(power)
        };
        if negative { -value } else { value }
    }

    /// The number whose decimal text is the shortest that rounds to these bits; for finite values.
    pub(crate) fn shortest(self, bits: u64) -> f64 {
        let exact = self.widen(bits);
        if self == BINARY64 || !exact.is_finite() {
            return exact;
        }
        // Nine digits tell apart all binary32 values.
        (0..9_usize)
            .filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok())
            .find(|candidate| self.round(*candidate) == bits)
            .unwrap_or(exact)
    }
}

/// `value / 2^shift`, ties to even; `shift` is 1..=54.
fn round_shift(value: u64, shift: u32) -> u64 {
    let kept = value.checked_shr(shift).unwrap_or(0);
    let half = 1_u64.checked_shl(shift.saturating_sub(1)).unwrap_or(0);
    let mask = half.saturating_mul(2).saturating_sub(1);
    let rest = value & mask;
    let up = rest > half || (rest == half && kept & 1 == 1);
    kept.saturating_add(u64::from(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary32_rounds_and_widens_as_the_machine_does() {
        for value in [
            0.0,
            -0.0,
            1.0,
            0.1,
            1e-45,
            7e-46,
            1.4e-45,
            1e-38,
            3.402_823_5e38,
            3.402_823_6e38,
            1e39,
            -1e39,
            16_777_217.0,
            16_777_219.0,
            1.175_494_3e-38,
            f64::INFINITY,
            f64::MIN_POSITIVE,
            5e-324,
        ] {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the rounding is the subject"
            )]
            let expected = value as f32;
            assert_eq!(
                BINARY32.round(value),
                u64::from(expected.to_bits()),
                "{value}"
            );
            assert_eq!(
                BINARY32.widen(u64::from(expected.to_bits())).to_bits(),
                f64::from(expected).to_bits()
            );
        }
    }

    #[test]
    fn binary16_and_bfloat16_have_the_values_of_their_standards() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x03ff, 6.097_555_160_522_461e-5),
            (0x0400, 6.103_515_625e-5),
            (0x3555, 0.333_251_953_125),
            (0x3c00, 1.0),
            (0x7bff, 65504.0),
            (0xfbff, -65504.0),
        ] {
            assert_eq!(BINARY16.widen(bits).to_bits(), f64::to_bits(value));
            assert_eq!(BINARY16.round(value), bits);
        }
        assert_eq!(BINARY16.round(65519.9), 0x7bff);
        assert_eq!(BINARY16.round(65520.0), 0x7c00);
        assert_eq!(BINARY16.round(2.98e-8), 0);
        assert_eq!(BFLOAT16.round(std::f64::consts::PI), 0x4049);
        assert_eq!(BFLOAT16.widen(0x4049).to_bits(), 3.140_625_f64.to_bits());
        assert_eq!(
            (
                BINARY16.quiet_nan(),
                BFLOAT16.quiet_nan(),
                BINARY32.quiet_nan(),
                BINARY64.quiet_nan()
            ),
            (0x7e00, 0x7fc0, 0x7fc0_0000, 0x7ff8_0000_0000_0000)
        );
    }

    #[test]
    fn every_sixteen_bit_value_survives_widening_and_its_shortest_decimal() {
        for layout in [BINARY16, BFLOAT16] {
            for bits in 0..=0xffff_u64 {
                if layout.is_nan(bits) {
                    continue;
                }
                assert_eq!(layout.round(layout.widen(bits)), bits);
                assert_eq!(layout.round(layout.shortest(bits)), bits);
            }
        }
        assert_eq!(format!("{:?}", BINARY16.shortest(0x2e66)), "0.1");
        assert_eq!(
            format!("{:?}", BINARY32.shortest(u64::from(0.1_f32.to_bits()))),
            "0.1"
        );
    }
}
