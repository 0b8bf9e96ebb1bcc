//! `BloscLZ`, read: the LZ77 of c-blosc, a descendant of `FastLZ`.
//!
//! Holds [`decode`]. An instruction is a byte: below 32, that many literals and one more follow; else the upper three bits
//! are the length of a match less two (7: bytes are added to it up to one below 255), the lower five and one more byte its
//! distance less one; the greatest such distance is followed by two bytes that are added to it. The first instruction is
//! literals. Must not encode.

use super::Fault;

/// The distance that two bytes are added to.
const NEAR_MAX: usize = 8191;
/// Upper three bits of an instruction whose match goes on in further bytes.
const LONG: usize = 7;
const BAD: Fault = Fault::Bad("a damaged BloscLZ stream");

/// Fills `out` from its start; gives how much.
pub(super) fn decode(src: &[u8], out: &mut [u8]) -> Result<usize, Fault> {
    let mut input = Input(src);
    let mut at = 0_usize;
    let mut control = input.byte()? & 31;
    loop {
        let low = usize::from(control & 31);
        if control < 32 {
            let literals = input.take(low.saturating_add(1))?;
            let end = at.saturating_add(literals.len());
            let place = out.get_mut(at..end).ok_or(Fault::Full)?;
            place.copy_from_slice(literals);
            at = end;
        } else {
            let short = usize::from(control >> 5);
            let mut len = short.saturating_add(2);
            let mut more = if short == LONG { 255 } else { 0 };
            while more == 255 {
                more = input.byte()?;
                len = len.saturating_add(usize::from(more));
            }
            let mut distance = (low << 8).saturating_add(usize::from(input.byte()?));
            if distance == NEAR_MAX {
                let high = usize::from(input.byte()?) << 8;
                let low = usize::from(input.byte()?);
                distance = distance.saturating_add(high).saturating_add(low);
            }
            at = copy(out, at, distance.saturating_add(1), len)?;
        }
        if input.0.is_empty() {
            return Ok(at);
        }
        control = input.byte()?;
    }
}

/// What is left of a stream.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (byte, rest) = self.0.split_first().ok_or(BAD)?;
        self.0 = rest;
        Ok(*byte)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BAD)?;
        self.0 = rest;
        Ok(taken)
    }
}

/// Copies `len` bytes from `distance` back, which may be what the copy itself has just written.
fn copy(out: &mut [u8], at: usize, distance: usize, len: usize) -> Result<usize, Fault> {
    let from = at.checked_sub(distance).ok_or(BAD)?;
    let end = at.saturating_add(len);
    if end > out.len() {
        return Err(Fault::Full);
    }
    let mut to = at;
    while to < end {
        // What lies before the target repeats what is wanted; each round doubles it.
        let n = to.saturating_sub(from).min(end.saturating_sub(to));
        out.copy_within(from..from.saturating_add(n), to);
        to = to.saturating_add(n);
    }
    Ok(end)
}
