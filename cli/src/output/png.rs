//! An answer as a picture: two axes, numbers through a perceptual colour map, the fill value and NaN apart.
//!
//! Holds [`write`]. The map is viridis, which has no grey; what is no value is grey.

use std::io::Write;

use orthant::{Block, DataType, Json};

use crate::exit::{Failure, Result};
use crate::json::element;

/// Where there is no value: fill or NaN.
const NO_VALUE: [u8; 3] = [0xC8, 0xC8, 0xC8];
/// Most pixels of a picture.
const PIXELS_MAX: u64 = 1 << 28;

/// Smallest and greatest value of a picture, for its caption; none where it holds no value.
pub(crate) type Range = Option<(f64, f64)>;

/// Writes the picture of a block with two axes longer than 1 (or fewer); axis 0 runs down, axis 1 to the right.
pub(crate) fn write(out: &mut impl Write, block: &Block, fill: &[u8]) -> Result<Range> {
    let (height, width) = size(&block.shape)?;
    let count = usize::try_from(u64::from(height) * u64::from(width)).unwrap_or(usize::MAX);
    let values: Vec<Option<f64>> = (0..count)
        .map(|i| {
            let bytes = element(&block.elements, &block.data_type, i);
            if bytes == fill {
                return Ok(None);
            }
            number(&block.data_type, bytes)
        })
        .collect::<Result<_>>()?;
    let finite = || values.iter().flatten().filter(|v| v.is_finite());
    let low = finite().copied().reduce(f64::min);
    let high = finite().copied().reduce(f64::max);
    let range = low.zip(high);
    let mut pixels = Vec::with_capacity(count.saturating_mul(3));
    for value in &values {
        pixels.extend_from_slice(&color(*value, range));
    }
    let failed = |e: png::EncodingError| match e {
        png::EncodingError::IoError(e) => Failure::stdout(&e),
        other => Failure::usage(format!("the picture cannot be written: {other}")),
    };
    let mut encoder = png::Encoder::new(out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(range)
}

/// Height and width: the last two axes, where all others are one element long.
fn size(shape: &[u64]) -> Result<(u32, u32)> {
    let long: Vec<u64> = shape.iter().copied().filter(|n| *n != 1).collect();
    let (height, width) = match (shape, long.as_slice()) {
        ([.., h, w], long)
            if long.len() <= 2 && u128::from(*h) * u128::from(*w) == product(shape) =>
        {
            (*h, *w)
        }
        (_, [h, w]) => (*h, *w),
        (_, [w]) => (1, *w),
        (_, []) => (1, 1),
        _ => {
            return Err(Failure::usage(format!(
                "a picture has two axes, the selection has {} longer than 1",
                long.len()
            ))
            .help("give a single coordinate on the others, as [0, :, :]"));
        }
    };
    if height == 0 || width == 0 {
        return Err(Failure::usage("a picture of no elements"));
    }
    let fits = height.checked_mul(width).is_some_and(|n| n <= PIXELS_MAX);
    match (u32::try_from(height), u32::try_from(width)) {
        (Ok(h), Ok(w)) if fits => Ok((h, w)),
        _ => Err(Failure::usage(format!(
            "a picture of {width} x {height} pixels is too large"
        ))
        .help("take every n-th coordinate, as [::4, ::4]")),
    }
}

fn product(shape: &[u64]) -> u128 {
    shape
        .iter()
        .fold(1_u128, |n, &extent| n.saturating_mul(extent.into()))
}

/// The element as a number; none for NaN and "not a time".
#[expect(
    clippy::cast_precision_loss,
    reason = "colours have 256 steps, a double has enough"
)]
fn number(data_type: &DataType, bytes: &[u8]) -> Result<Option<f64>> {
    let eight = || bytes.try_into().map_or(i64::MIN, i64::from_le_bytes);
    match data_type {
        DataType::Datetime64 { .. } | DataType::Timedelta64 { .. } => {
            Ok(Some(eight()).filter(|v| *v != i64::MIN).map(|v| v as f64))
        }
        DataType::Complex64 | DataType::Complex128 | DataType::RawBytes { .. } => {
            Err(no_numbers(data_type))
        }
        _ => match data_type.element_to_json(bytes) {
            Json::Bool(v) => Ok(Some(f64::from(u8::from(v)))),
            Json::I64(v) => Ok(Some(v as f64)),
            Json::U64(v) => Ok(Some(v as f64)),
            Json::F64(v) => Ok(Some(v)),
            Json::String(s) if s == "NaN" => Ok(None),
            Json::String(s) if s == "Infinity" => Ok(Some(f64::INFINITY)),
            Json::String(s) if s == "-Infinity" => Ok(Some(f64::NEG_INFINITY)),
            _ => Err(no_numbers(data_type)),
        },
    }
}

fn no_numbers(data_type: &DataType) -> Failure {
    Failure::usage(format!("elements of type {data_type} have no colour"))
}

fn color(value: Option<f64>, range: Range) -> [u8; 3] {
    let (Some(v), Some((low, high))) = (value, range) else {
        return value.map_or(NO_VALUE, |v| map(if v > 0.0 { 1.0 } else { 0.0 }));
    };
    if v.is_nan() {
        return NO_VALUE;
    }
    // Halves first: the difference of two doubles may be infinite.
    let t = if high > low {
        (v / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    } else {
        0.5
    };
    map(t.clamp(0.0, 1.0))
}

fn map(t: f64) -> [u8; 3] {
    let c = colorous::VIRIDIS.eval_continuous(t);
    [c.r, c.g, c.b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use orthant::Elements;

    fn picture(values: &[f32], shape: &[u64], fill: f32) -> (Vec<u8>, Range) {
        let block = Block {
            data_type: DataType::Float32,
            shape: shape.to_vec(),
            elements: Elements::Fixed(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        };
        let mut out = Vec::new();
        let range = write(&mut out, &block, &fill.to_le_bytes()).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(out))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(
            u64::from(info.width) * u64::from(info.height) * 3,
            pixels.len() as u64
        );
        (pixels, range)
    }

    #[test]
    fn fill_and_nan_are_grey_and_values_never_are() {
        let (pixels, range) = picture(
            &[1.0, 2.0, f32::NAN, -9.0, 3.0, f32::INFINITY],
            &[2, 3],
            -9.0,
        );
        let pixel = |i: usize| [pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]];
        assert_eq!(range, Some((1.0, 3.0)));
        assert_eq!(pixel(2), NO_VALUE);
        assert_eq!(pixel(3), NO_VALUE);
        assert_eq!(pixel(0), map(0.0));
        assert_eq!(pixel(4), map(1.0));
        assert_eq!(pixel(5), map(1.0));
        assert!((0..=1000).all(|i| map(f64::from(i) / 1000.0) != NO_VALUE));
    }

    #[test]
    fn axes_of_one_element_do_not_count() {
        assert_eq!(size(&[1, 4, 1, 5]).unwrap(), (4, 5));
        assert_eq!(size(&[7, 1]).unwrap(), (7, 1));
        assert_eq!(size(&[7]).unwrap(), (1, 7));
        assert_eq!(size(&[]).unwrap(), (1, 1));
        assert!(size(&[2, 2, 2]).is_err());
        assert!(size(&[0, 2]).is_err());
        assert!(size(&[1 << 20, 1 << 20]).is_err());
    }
}
