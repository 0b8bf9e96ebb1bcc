//! Interleaving and its undoing on vectors of 16 bytes.
//!
//! Holds [`interleave`] and [`deinterleave`] of `P` vectors, `P` a power of two: the inner step of the shuffle codec.
//! On x86-64 the four operations are single instructions of its base set; elsewhere they are loops over arrays, which
//! compilers turn into the same. Must not know elements.

/// 16 bytes.
pub(super) type Lane = [u8; 16];

/// From byte planes to elements: byte `i` of vector `p` comes to place `i * P + p` of the whole.
#[inline]
pub(super) fn interleave<const P: usize>(planes: [Lane; P]) -> [Lane; P] {
    let mut lanes = planes.map(imp::load);
    let half = P >> 1;
    for _ in 0..P.ilog2() {
        let before = lanes;
        for (i, pair) in lanes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let (a, b) = (at(&before, i), at(&before, i.wrapping_add(half)));
            *pair = [imp::low(a, b), imp::high(a, b)];
        }
    }
    lanes.map(imp::store)
}

/// From elements to byte planes: the inverse of [`interleave`].
#[inline]
pub(super) fn deinterleave<const P: usize>(elements: [Lane; P]) -> [Lane; P] {
    let mut lanes = elements.map(imp::load);
    let half = P >> 1;
    for _ in 0..P.ilog2() {
        let before = lanes;
        for (i, &[a, b]) in before.as_chunks::<2>().0.iter().enumerate() {
            set(&mut lanes, i, imp::even(a, b));
            set(&mut lanes, i.wrapping_add(half), imp::odd(a, b));
        }
    }
    lanes.map(imp::store)
}

#[inline]
#[expect(
    clippy::indexing_slicing,
    reason = "both callers stay below P; a checked get would hide that from the compiler"
)]
fn at<const P: usize>(lanes: &[imp::Vector; P], i: usize) -> imp::Vector {
    lanes[i]
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "as above")]
fn set<const P: usize>(lanes: &mut [imp::Vector; P], i: usize, value: imp::Vector) {
    lanes[i] = value;
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use safe_arch::{
        m128i, pack_i16_to_u8_m128i, set_splat_i16_m128i, shr_imm_u16_m128i, unpack_high_i8_m128i,
        unpack_low_i8_m128i,
    };

    use super::Lane;

    pub(super) type Vector = m128i;

    #[inline]
    pub(super) fn load(lane: Lane) -> Vector {
        m128i::from(lane)
    }

    #[inline]
    pub(super) fn store(vector: Vector) -> Lane {
        vector.into()
    }

    /// The lower halves, byte by byte in turn.
    #[inline]
    pub(super) fn low(a: Vector, b: Vector) -> Vector {
        unpack_low_i8_m128i(a, b)
    }

    /// The upper halves, byte by byte in turn.
    #[inline]
    pub(super) fn high(a: Vector, b: Vector) -> Vector {
        unpack_high_i8_m128i(a, b)
    }

    /// The bytes at even places of `a`, then those of `b`.
    #[inline]
    pub(super) fn even(a: Vector, b: Vector) -> Vector {
        let mask = set_splat_i16_m128i(0x00ff);
        pack_i16_to_u8_m128i(a & mask, b & mask)
    }

    /// The bytes at odd places of `a`, then those of `b`.
    #[inline]
    pub(super) fn odd(a: Vector, b: Vector) -> Vector {
        pack_i16_to_u8_m128i(shr_imm_u16_m128i::<8>(a), shr_imm_u16_m128i::<8>(b))
    }
}

#[cfg(any(not(target_arch = "x86_64"), test))]
#[cfg_attr(
    target_arch = "x86_64",
    expect(dead_code, reason = "compared with the instructions by a test")
)]
mod portable {
    use super::Lane;

    pub(super) type Vector = Lane;

    #[inline]
    pub(super) fn load(lane: Lane) -> Vector {
        lane
    }

    #[inline]
    pub(super) fn store(vector: Vector) -> Lane {
        vector
    }

    #[inline]
    pub(super) fn low(a: Vector, b: Vector) -> Vector {
        zip(&a, &b)
    }

    #[inline]
    pub(super) fn high(a: Vector, b: Vector) -> Vector {
        let (a, b) = (a.split_at(8).1, b.split_at(8).1);
        zip(a, b)
    }

    #[inline]
    pub(super) fn even(a: Vector, b: Vector) -> Vector {
        every_second(a.iter().chain(&b))
    }

    #[inline]
    pub(super) fn odd(a: Vector, b: Vector) -> Vector {
        every_second(a.iter().chain(&b).skip(1))
    }

    fn zip(a: &[u8], b: &[u8]) -> Lane {
        let mut out = [0; 16];
        for (pair, (a, b)) in out.as_chunks_mut::<2>().0.iter_mut().zip(a.iter().zip(b)) {
            *pair = [*a, *b];
        }
        out
    }

    fn every_second<'a>(bytes: impl Iterator<Item = &'a u8>) -> Lane {
        let mut out = [0; 16];
        for (to, from) in out.iter_mut().zip(bytes.step_by(2)) {
            *to = *from;
        }
        out
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable as imp;

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "small numbers of a test")]
mod tests {
    use super::*;

    fn check<const P: usize>() {
        let planes: [Lane; P] = std::array::from_fn(|p| {
            std::array::from_fn(|i| u8::try_from((p * 16 + i) % 251).unwrap())
        });
        let elements = interleave(planes);
        for (p, plane) in planes.iter().enumerate() {
            for (i, byte) in plane.iter().enumerate() {
                assert_eq!(elements.as_flattened()[i * P + p], *byte);
            }
        }
        assert_eq!(deinterleave(elements), planes);
    }

    #[test]
    fn planes_and_elements_are_each_others_inverse() {
        check::<2>();
        check::<4>();
        check::<8>();
        check::<16>();
    }

    #[test]
    fn the_portable_operations_do_what_the_instructions_do() {
        let a: Lane = std::array::from_fn(|i| u8::try_from(i * 7 % 256).unwrap());
        let b: Lane = std::array::from_fn(|i| u8::try_from(255 - i).unwrap());
        let (x, y) = (imp::load(a), imp::load(b));
        assert_eq!(imp::store(imp::low(x, y)), portable::low(a, b));
        assert_eq!(imp::store(imp::high(x, y)), portable::high(a, b));
        assert_eq!(imp::store(imp::even(x, y)), portable::even(a, b));
        assert_eq!(imp::store(imp::odd(x, y)), portable::odd(a, b));
    }
}
