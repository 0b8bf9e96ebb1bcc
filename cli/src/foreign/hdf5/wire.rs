//! What the types of HDF5 are in a container, and how elements get from one form to the other.
//!
//! Holds [`Kind`] and [`Wire`]. Values are kept bit by bit; only numbers that fill their bytes in part, which a container
//! has no type for, are widened. Must not read files.

use orthant::{AttributeValue, DataType, Field, Json};

use super::datatype::{Bits, Class, Member, Order, Parts, Type};
use crate::foreign::Refusal;

/// Most fields of a record, records within it laid open.
const FIELDS_MAX: usize = 1024;

/// A type of HDF5 as a container has it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) data_type: DataType,
    /// Axes behind those of the dataset: elements that are arrays.
    pub(super) dims: Vec<u64>,
    /// Bytes of one element of `data_type` in the file.
    pub(super) size: usize,
    pub(super) wire: Wire,
    /// The attribute that names the values of an enumeration.
    pub(super) names: Option<AttributeValue>,
    pub(super) notes: Vec<String>,
}

/// How an element's bytes lie in the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wire {
    /// As in a container.
    Same,
    /// Every so many bytes the other way round.
    Swapped(usize),
    /// An integer in some of its bits.
    Some { bits: Bits, signed: bool },
    /// A float that is none of IEEE 754's.
    Float {
        bits: Bits,
        parts: Parts,
        wide: bool,
    },
    /// Members with gaps or in several byte orders: where each begins, its bytes, and how it lies.
    Members(Vec<(usize, usize, Wire)>),
    /// A reference to text in a heap.
    Text,
}

impl Kind {
    pub(super) fn of(data_type: &Type) -> Result<Self, Refusal> {
        match &data_type.class {
            Class::Array { base, dims } => {
                let mut inner = Self::of(base)?;
                let mut all = dims.clone();
                all.append(&mut inner.dims);
                inner.dims = all;
                Ok(inner)
            }
            Class::Enumeration { base, members } => enumeration(base, members),
            Class::VariableText => Ok(Self::plain(DataType::String, data_type.size, Wire::Text)),
            Class::Record(members) => match complex_of(members, data_type.size) {
                Some(base) => complex(base),
                None => record(members, data_type.size),
            },
            Class::Complex(base) => complex(base),
            _ => scalar(data_type),
        }
    }

    fn plain(data_type: DataType, size: usize, wire: Wire) -> Self {
        Self {
            data_type,
            dims: Vec::new(),
            size,
            wire,
            names: None,
            notes: Vec::new(),
        }
    }

    /// The byte order under which a container reads the elements as they are; none where it cannot. Elements without byte
    /// order are little.
    pub(super) fn endian(&self) -> Option<&'static str> {
        match (&self.wire, &self.data_type) {
            (Wire::Same, _) => Some("little"),
            (Wire::Swapped(_), DataType::Structured(_)) => None,
            (Wire::Swapped(_), _) => Some("big"),
            _ => None,
        }
    }
}

fn scalar(data_type: &Type) -> Result<Kind, Refusal> {
    let size = data_type.size;
    let length = u32::try_from(size).unwrap_or(u32::MAX);
    Ok(match &data_type.class {
        Class::Integer { signed, bits } => integer(size, *signed, *bits)?,
        Class::Bitfield(bits) => match integer(size, false, *bits) {
            Ok(kind) => kind,
            Err(_) => Kind::plain(DataType::RawBytes { length }, size, Wire::Same),
        },
        Class::Float { bits, parts } => float(size, *bits, *parts)?,
        Class::Text { .. } => {
            Kind::plain(DataType::NullTerminatedBytes { length }, size, Wire::Same)
        }
        Class::Opaque { tag } => opaque(tag, size, length),
        Class::Reference => return Err("references to other objects".to_owned()),
        Class::Sequence(base) => {
            return Err(match base.class {
                Class::Reference => "lists of references to other objects",
                _ => "lists of any length, which no element type of a container is",
            }
            .to_owned());
        }
        Class::Time => return Err("HDF5's own type of times".to_owned()),
        Class::Array { .. } => return Err("arrays within records within records".to_owned()),
        Class::Record(_) | Class::Complex(_) | Class::Enumeration { .. } | Class::VariableText => {
            return Err("a type within a type".to_owned());
        }
    })
}

fn integer(size: usize, signed: bool, bits: Bits) -> Result<Kind, Refusal> {
    let data_type = match (size, signed) {
        (1, true) => DataType::Int8,
        (1, false) => DataType::Uint8,
        (2, true) => DataType::Int16,
        (2, false) => DataType::Uint16,
        (3 | 4, true) => DataType::Int32,
        (3 | 4, false) => DataType::Uint32,
        (5..=8, true) => DataType::Int64,
        (5..=8, false) => DataType::Uint64,
        _ => return Err(format!("integers of {size} bytes")),
    };
    let whole = bits.offset == 0
        && usize::from(bits.precision) == size.saturating_mul(8)
        && data_type.item_size() == Some(size);
    let wire = if whole {
        words(size, bits.order)?
    } else {
        let end = usize::from(bits.offset).saturating_add(usize::from(bits.precision));
        if bits.precision == 0 || end > size.saturating_mul(8) || bits.order == Order::Vax {
            return Err("integers whose bits lie outside them".to_owned());
        }
        Wire::Some { bits, signed }
    };
    Ok(Kind::plain(data_type, size, wire))
}

fn words(size: usize, order: Order) -> Result<Wire, Refusal> {
    match order {
        Order::Big if size > 1 => Ok(Wire::Swapped(size)),
        Order::Little | Order::Big => Ok(Wire::Same),
        Order::Vax => Err("numbers in the byte order of a VAX".to_owned()),
    }
}

fn float(size: usize, bits: Bits, parts: Parts) -> Result<Kind, Refusal> {
    let shape = (size, parts.exponent_len, parts.mantissa_len, parts.bias);
    let data_type = match shape {
        (2, 5, 10, 15) => Some(DataType::Float16),
        (2, 8, 7, 127) => Some(DataType::Bfloat16),
        (4, 8, 23, 127) => Some(DataType::Float32),
        (8, 11, 52, 1023) => Some(DataType::Float64),
        _ => None,
    };
    let in_order = bits.offset == 0
        && usize::from(bits.precision) == size.saturating_mul(8)
        && parts.implied
        && parts.mantissa_at == 0
        && parts.exponent_at == parts.mantissa_len
        && parts.sign_at == parts.mantissa_len.saturating_add(parts.exponent_len);
    if let Some(data_type) = data_type
        && in_order
    {
        return Ok(Kind::plain(data_type, size, words(size, bits.order)?));
    }
    let narrow = parts.exponent_len <= 8 && parts.mantissa_len <= 23;
    let fits = size <= 8
        && (1..=11).contains(&parts.exponent_len)
        && parts.mantissa_len <= 52
        && parts.implied
        && parts.bias <= 1023
        && bits.order != Order::Vax
        && [
            (parts.sign_at, 1),
            (parts.exponent_at, parts.exponent_len),
            (parts.mantissa_at, parts.mantissa_len),
        ]
        .iter()
        .all(|(at, len)| usize::from(*at) + usize::from(*len) <= size.saturating_mul(8));
    if !fits {
        return Err(format!(
            "floats of {size} bytes, {} bits of exponent and {} of mantissa",
            parts.exponent_len, parts.mantissa_len
        ));
    }
    let wide = !narrow || parts.bias > 127;
    let data_type = if wide {
        DataType::Float64
    } else {
        DataType::Float32
    };
    let mut kind = Kind::plain(data_type, size, Wire::Float { bits, parts, wide });
    kind.notes.push(format!(
        "floats of {} bits of exponent and {} of mantissa are widened",
        parts.exponent_len, parts.mantissa_len
    ));
    Ok(kind)
}

fn opaque(tag: &str, size: usize, length: u32) -> Kind {
    // h5py's word for types of NumPy that HDF5 has not.
    if let Some(descr) = tag.strip_prefix("NUMPY:")
        && let Ok((data_type, big)) = DataType::from_numpy_descr(descr)
        && data_type.item_size() == Some(size)
        && !matches!(data_type, DataType::Structured(_))
    {
        let wire = if big { Wire::Swapped(size) } else { Wire::Same };
        return Kind::plain(data_type, size, wire);
    }
    let mut kind = Kind::plain(DataType::RawBytes { length }, size, Wire::Same);
    if !tag.is_empty() {
        kind.notes
            .push(format!("bytes that the file calls {tag:?}"));
    }
    kind
}

fn enumeration(base: &Type, members: &[(String, Vec<u8>)]) -> Result<Kind, Refusal> {
    let Class::Integer { .. } = base.class else {
        return Err("an enumeration of something else than integers".to_owned());
    };
    let mut kind = scalar(base)?;
    let pairs: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_slice()))
        .collect();
    // h5py's booleans.
    if matches!(pairs.as_slice(), [("FALSE", [0]), ("TRUE", [1])]) {
        kind.data_type = DataType::Bool;
        return Ok(kind);
    }
    let mut names = Vec::new();
    for (name, value) in members {
        let element = kind.wire.decode(value.clone(), base.size)?;
        names.push((name.clone(), kind.data_type.element_to_json(&element)));
    }
    kind.names = Some(Json::Object(names).into());
    Ok(kind)
}

/// The type of the two numbers of a record that is a complex number: h5py's `r` and `i`, netCDF's `real` and `imag`.
fn complex_of(members: &[Member], size: usize) -> Option<&Type> {
    let [a, b] = members else { return None };
    let named = matches!(
        (a.name.as_str(), b.name.as_str()),
        ("r", "i") | ("real", "imag")
    );
    let half = a.data_type.size;
    let packed = a.offset == 0 && b.offset == half && half.checked_mul(2) == Some(size);
    let float = matches!(a.data_type.class, Class::Float { .. });
    (named && packed && float && a.data_type == b.data_type).then_some(&a.data_type)
}

fn complex(base: &Type) -> Result<Kind, Refusal> {
    let mut kind = scalar(base)?;
    kind.data_type = match (&kind.data_type, &kind.wire) {
        (DataType::Float32, Wire::Same | Wire::Swapped(_)) => DataType::Complex64,
        (DataType::Float64, Wire::Same | Wire::Swapped(_)) => DataType::Complex128,
        (other, _) => return Err(format!("complex numbers of two {other}")),
    };
    kind.size = kind.size.saturating_mul(2);
    Ok(kind)
}

fn record(members: &[Member], size: usize) -> Result<Kind, Refusal> {
    let mut open = Open::default();
    open.members("", 0, members, 0)?;
    let mut packed = 0_usize;
    let as_it_is = open.wires.iter().all(|(at, len, wire)| {
        let here = packed;
        packed = packed.saturating_add(*len);
        *at == here && *wire == Wire::Same
    });
    let wire = if as_it_is && packed == size {
        Wire::Same
    } else {
        Wire::Members(open.wires)
    };
    let mut kind = Kind::plain(DataType::Structured(open.fields), size, wire);
    if open.nested {
        kind.notes.push(
            "records and arrays within the record are laid open, a field for each of their parts"
                .to_owned(),
        );
    }
    if open.enums {
        kind.notes
            .push("enumerations within the record are their integers".to_owned());
    }
    Ok(kind)
}

/// A record laid open.
#[derive(Default)]
struct Open {
    fields: Vec<Field>,
    wires: Vec<(usize, usize, Wire)>,
    nested: bool,
    enums: bool,
}

impl Open {
    fn members(
        &mut self,
        above: &str,
        start: usize,
        members: &[Member],
        depth: usize,
    ) -> Result<(), Refusal> {
        for member in members {
            let name = format!("{above}{}", member.name);
            let at = start.saturating_add(member.offset);
            self.member(name, at, &member.data_type, depth)?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        name: String,
        at: usize,
        data_type: &Type,
        depth: usize,
    ) -> Result<(), Refusal> {
        let deeper = depth.saturating_add(1);
        match &data_type.class {
            Class::Record(members) if complex_of(members, data_type.size).is_none() => {
                self.nested = true;
                return self.members(&format!("{name}."), at, members, deeper);
            }
            Class::Array { base, dims } => {
                self.nested = true;
                let count = dims.iter().fold(1_u64, |n, d| n.saturating_mul(*d));
                if count > FIELDS_MAX as u64 {
                    return Err(format!("a record with an array of {count} elements in it"));
                }
                let count = usize::try_from(count).unwrap_or_default();
                for i in 0..count {
                    let at = at.saturating_add(i.saturating_mul(base.size));
                    self.member(format!("{name}[{i}]"), at, base, deeper)?;
                }
                return Ok(());
            }
            _ => {}
        }
        let kind = Kind::of(data_type)
            .map_err(|reason| format!("a record whose member {name:?} is of {reason}"))?;
        if kind.wire == Wire::Text {
            return Err(format!(
                "a record whose member {name:?} is text of any length"
            ));
        }
        if self.fields.len() >= FIELDS_MAX {
            return Err(format!("a record of more than {FIELDS_MAX} members"));
        }
        self.enums |= kind.names.is_some();
        self.fields.push(Field {
            name,
            data_type: kind.data_type,
        });
        self.wires.push((at, kind.size, kind.wire));
        Ok(())
    }
}

impl Wire {
    /// Elements of `size` bytes in the file as a container has them.
    pub(super) fn decode(&self, mut bytes: Vec<u8>, size: usize) -> Result<Vec<u8>, Refusal> {
        match self {
            Self::Same => Ok(bytes),
            Self::Swapped(word) => {
                for word in bytes.chunks_exact_mut((*word).max(1)) {
                    word.reverse();
                }
                Ok(bytes)
            }
            Self::Text => Err("text, which is not where its elements are".to_owned()),
            _ => {
                let mut out = Vec::new();
                for element in bytes.chunks_exact(size.max(1)) {
                    self.element(element, &mut out)?;
                }
                Ok(out)
            }
        }
    }

    fn element(&self, element: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
        match self {
            Self::Same => out.extend_from_slice(element),
            Self::Swapped(word) => {
                for word in element.chunks((*word).max(1)) {
                    out.extend(word.iter().rev());
                }
            }
            Self::Some { bits, signed } => {
                let width = match element.len() {
                    3 => 4,
                    5..=7 => 8,
                    n => n,
                };
                let value = part(number(element, bits.order), bits.offset, bits.precision);
                let negative = *signed
                    && part(value, bits.precision.saturating_sub(1), 1) == 1
                    && bits.precision < 64;
                let value = if negative {
                    value | u64::MAX.wrapping_shl(u32::from(bits.precision))
                } else {
                    value
                };
                out.extend(value.to_le_bytes().iter().take(width));
            }
            Self::Float { bits, parts, wide } => {
                let value = value_of(number(element, bits.order), *parts);
                if *wide {
                    out.extend(value.to_le_bytes());
                } else {
                    #[expect(clippy::cast_possible_truncation, reason = "of at most 24 bits")]
                    out.extend((value as f32).to_le_bytes());
                }
            }
            Self::Members(members) => {
                for (at, len, wire) in members {
                    let part = element.get(*at..at.saturating_add(*len));
                    wire.element(part.ok_or("a record that is cut")?, out)?;
                }
            }
            Self::Text => return Err("text within a record".to_owned()),
        }
        Ok(())
    }
}

/// The bytes of an element as one number; elements have 8 at most here.
fn number(element: &[u8], order: Order) -> u64 {
    let add = |n: u64, b: &u8| n.wrapping_shl(8) | u64::from(*b);
    match order {
        Order::Big => element.iter().fold(0, add),
        _ => element.iter().rev().fold(0, add),
    }
}

fn part(number: u64, at: u16, len: u16) -> u64 {
    let shifted = number.checked_shr(u32::from(at)).unwrap_or(0);
    let mask = 1_u64
        .checked_shl(u32::from(len))
        .map_or(u64::MAX, |bit| bit.wrapping_sub(1));
    shifted & mask
}

/// What the bits of a float mean; exact, as none has more of them than an `f64`.
fn value_of(bits: u64, parts: Parts) -> f64 {
    let of = |at: u8, len: u8| part(bits, u16::from(at), u16::from(len));
    let sign = if of(parts.sign_at, 1) == 1 { -1.0 } else { 1.0 };
    let exponent = of(parts.exponent_at, parts.exponent_len);
    let mantissa = of(parts.mantissa_at, parts.mantissa_len);
    let ones = part(u64::MAX, 0, u16::from(parts.exponent_len));
    if exponent == ones {
        return if mantissa == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    #[expect(clippy::cast_precision_loss, reason = "at most 52 bits")]
    let mut value = mantissa as f64;
    let mut power = i32::try_from(exponent.max(1)).unwrap_or_default()
        - i32::try_from(parts.bias).unwrap_or_default()
        - i32::from(parts.mantissa_len);
    if exponent != 0 {
        value += 2.0_f64.powi(i32::from(parts.mantissa_len));
    }
    // In two steps, as the least power is no normal number.
    while power < -1000 {
        value *= 2.0_f64.powi(-500);
        power += 500;
    }
    sign * value * 2.0_f64.powi(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(order: Order, offset: u16, precision: u16) -> Bits {
        Bits {
            order,
            offset,
            precision,
        }
    }

    fn whole(size: usize, signed: bool, order: Order) -> Type {
        let precision = u16::try_from(size * 8).unwrap();
        Type {
            size,
            class: Class::Integer {
                signed,
                bits: bits(order, 0, precision),
            },
        }
    }

    #[test]
    fn integers_in_some_of_their_bits_keep_their_sign() {
        let wire = |order| Wire::Some {
            bits: bits(order, 4, 8),
            signed: true,
        };
        let little = wire(Order::Little).decode(vec![0xef, 0x0f, 0x50, 0x00], 2);
        assert_eq!(little.unwrap(), [0xfe, 0xff, 5, 0]);
        let big = wire(Order::Big).decode(vec![0x0f, 0xef], 2);
        assert_eq!(big.unwrap(), [0xfe, 0xff]);
    }

    #[test]
    fn floats_of_other_widths_are_the_same_numbers() {
        // bfloat16's parts, whose values are the upper half of a binary32.
        let parts = Parts {
            sign_at: 15,
            exponent_at: 7,
            exponent_len: 8,
            mantissa_at: 0,
            mantissa_len: 7,
            bias: 127,
            implied: true,
        };
        for upper in [
            0_u32, 0x8000, 0x3f80, 0xc2f7, 0x0001, 0x7f7f, 0x7f80, 0xff80,
        ] {
            let wanted = f64::from(f32::from_bits(upper << 16));
            let found = value_of(u64::from(upper), parts);
            assert_eq!(found.to_bits(), wanted.to_bits(), "{upper:#x}");
        }
        assert!(value_of(0x7fc0, parts).is_nan());
    }

    #[test]
    fn records_are_laid_open_and_their_gaps_left_out() {
        let member = |name: &str, offset, data_type| Member {
            name: name.to_owned(),
            offset,
            data_type,
        };
        let inner = Type {
            size: 4,
            class: Class::Record(vec![member("x", 1, whole(2, false, Order::Big))]),
        };
        let array = Type {
            size: 2,
            class: Class::Array {
                base: Box::new(whole(1, true, Order::Little)),
                dims: vec![2],
            },
        };
        let record = Type {
            size: 8,
            class: Class::Record(vec![member("a", 0, inner), member("b", 5, array)]),
        };
        let kind = Kind::of(&record).unwrap();
        let DataType::Structured(fields) = &kind.data_type else {
            panic!("{:?}", kind.data_type)
        };
        let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a.x", "b[0]", "b[1]"]);
        let element = vec![9, 1, 2, 9, 9, 3, 4, 9];
        assert_eq!(kind.wire.decode(element, kind.size).unwrap(), [2, 1, 3, 4]);
        assert_eq!((kind.endian(), kind.notes.len()), (None, 1));
    }
}
