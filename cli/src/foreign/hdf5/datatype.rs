//! Datatype messages, every class of them. After the "HDF5 File Format Specification", IV.A.2.d.
//!
//! Holds [`Type`]. Must not know what a container can hold.

use crate::foreign::Refusal;
use crate::foreign::cursor::Cursor;

/// Deepest nesting of types.
const DEPTH_MAX: usize = 32;

/// A type as the file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Type {
    /// Bytes of one element in the file.
    pub(super) size: usize,
    pub(super) class: Class,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Class {
    Integer {
        signed: bool,
        bits: Bits,
    },
    Bitfield(Bits),
    Float {
        bits: Bits,
        parts: Parts,
    },
    Text {
        padding: Padding,
    },
    Opaque {
        tag: String,
    },
    Record(Vec<Member>),
    /// References to objects, regions or attributes.
    Reference,
    Enumeration {
        base: Box<Type>,
        members: Vec<(String, Vec<u8>)>,
    },
    /// Elements of any number.
    Sequence(Box<Type>),
    VariableText,
    Array {
        base: Box<Type>,
        dims: Vec<u64>,
    },
    Complex(Box<Type>),
    Time,
}

/// Where in its bytes a number lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) order: Order,
    pub(super) offset: u16,
    pub(super) precision: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
    Vax,
}

/// The parts of a float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) sign_at: u8,
    pub(super) exponent_at: u8,
    pub(super) exponent_len: u8,
    pub(super) mantissa_at: u8,
    pub(super) mantissa_len: u8,
    pub(super) bias: u32,
    /// The mantissa's first bit is one and not stored.
    pub(super) implied: bool,
}

/// What fills a text up to its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    Zeros,
    Spaces,
}

/// A member of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) data_type: Type,
}

impl Type {
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        Self::at(&mut Cursor::little(body), 0)
    }

    fn at(cursor: &mut Cursor<'_>, depth: usize) -> Result<Self, Refusal> {
        if depth > DEPTH_MAX {
            return Err(format!("a type that nests deeper than {DEPTH_MAX}"));
        }
        let head = cursor.u8()?;
        let (class, version) = (head & 0x0f, head >> 4);
        let flags = u32::try_from(cursor.uint(3)?).unwrap_or_default();
        let size = cursor.count()?;
        let class = match class {
            0 => Class::Integer {
                signed: flags & 8 != 0,
                bits: bits(cursor, flags)?,
            },
            1 => float(cursor, flags)?,
            2 => {
                cursor.skip(2)?;
                Class::Time
            }
            3 => Class::Text {
                padding: match flags & 0x0f {
                    0 | 1 => Padding::Zeros,
                    2 => Padding::Spaces,
                    other => return Err(format!("text of padding {other}")),
                },
            },
            4 => Class::Bitfield(bits(cursor, flags)?),
            5 => opaque(cursor, flags)?,
            6 => record(cursor, flags, version, size, depth)?,
            7 => Class::Reference,
            8 => enumeration(cursor, flags, version, depth)?,
            9 => {
                let base = Self::at(cursor, depth.saturating_add(1))?;
                match flags & 0x0f {
                    0 => Class::Sequence(Box::new(base)),
                    1 => Class::VariableText,
                    other => return Err(format!("elements of any number, of kind {other}")),
                }
            }
            10 => array(cursor, version, depth)?,
            11 => Class::Complex(Box::new(Self::at(cursor, depth.saturating_add(1))?)),
            other => return Err(format!("a type of class {other}")),
        };
        let inner = match &class {
            Class::Enumeration { base, .. } => Some(base.size),
            Class::Complex(base) => base.size.checked_mul(2),
            Class::Array { base, dims } => Some(repeated((**base).clone(), dims.clone())?.size),
            _ => None,
        };
        if size == 0 || inner.is_some_and(|inner| inner != size) {
            return Err(format!("a type of {size} bytes that cannot be"));
        }
        Ok(Self { size, class })
    }
}

fn order(flags: u32) -> Result<Order, Refusal> {
    match (flags & 1, flags & 0x40) {
        (0, 0) => Ok(Order::Little),
        (1, 0) => Ok(Order::Big),
        (1, _) => Ok(Order::Vax),
        _ => Err("numbers in an unknown byte order".to_owned()),
    }
}

fn bits(cursor: &mut Cursor<'_>, flags: u32) -> Result<Bits, Refusal> {
    Ok(Bits {
        order: order(flags & 1)?,
        offset: cursor.u16()?,
        precision: cursor.u16()?,
    })
}

fn float(cursor: &mut Cursor<'_>, flags: u32) -> Result<Class, Refusal> {
    let bits = Bits {
        order: order(flags)?,
        offset: cursor.u16()?,
        precision: cursor.u16()?,
    };
    let parts = Parts {
        sign_at: u8::try_from(flags >> 8 & 0xff).unwrap_or_default(),
        exponent_at: cursor.u8()?,
        exponent_len: cursor.u8()?,
        mantissa_at: cursor.u8()?,
        mantissa_len: cursor.u8()?,
        bias: cursor.u32()?,
        implied: match flags >> 4 & 3 {
            0 => false,
            2 => true,
            other => return Err(format!("floats of normalization {other}")),
        },
    };
    Ok(Class::Float { bits, parts })
}

fn opaque(cursor: &mut Cursor<'_>, flags: u32) -> Result<Class, Refusal> {
    let len = usize::try_from(flags & 0xff).unwrap_or_default();
    let tag = cursor.take(len)?;
    cursor.skip(len.next_multiple_of(8).saturating_sub(len))?;
    let end = tag.iter().position(|b| *b == 0).unwrap_or(len);
    let tag = String::from_utf8_lossy(tag.get(..end).unwrap_or_default());
    Ok(Class::Opaque {
        tag: tag.into_owned(),
    })
}

fn name(cursor: &mut Cursor<'_>, version: u8) -> Result<String, Refusal> {
    let start = cursor.position();
    let name = cursor.until_zero()?;
    if version < 3 {
        let len = cursor.position().saturating_sub(start);
        cursor.skip(len.next_multiple_of(8).saturating_sub(len))?;
    }
    String::from_utf8(name.to_vec()).map_err(|_| "a name that is not UTF-8".to_owned())
}

fn record(
    cursor: &mut Cursor<'_>,
    flags: u32,
    version: u8,
    size: usize,
    depth: usize,
) -> Result<Class, Refusal> {
    let mut members = Vec::new();
    for _ in 0..flags & 0xffff {
        let name = name(cursor, version)?;
        let width = match size {
            _ if version < 3 => 4,
            0..=0xff => 1,
            0x100..=0xffff => 2,
            0x1_0000..=0xff_ffff => 3,
            _ => 4,
        };
        let offset = usize::try_from(cursor.uint(width)?).unwrap_or(usize::MAX);
        let mut dims = Vec::new();
        if version == 1 {
            let rank = cursor.u8()?;
            cursor.skip(11)?;
            for axis in 0..4 {
                let len = u64::from(cursor.u32()?);
                if axis < rank {
                    dims.push(len);
                }
            }
        }
        let mut data_type = Type::at(cursor, depth.saturating_add(1))?;
        if !dims.is_empty() {
            data_type = repeated(data_type, dims)?;
        }
        let end = offset.checked_add(data_type.size);
        if end.is_none_or(|end| end > size) {
            return Err(format!("a record whose member {name:?} lies past its end"));
        }
        members.push(Member {
            name,
            offset,
            data_type,
        });
    }
    Ok(Class::Record(members))
}

fn enumeration(
    cursor: &mut Cursor<'_>,
    flags: u32,
    version: u8,
    depth: usize,
) -> Result<Class, Refusal> {
    let base = Type::at(cursor, depth.saturating_add(1))?;
    let mut names = Vec::new();
    for _ in 0..flags & 0xffff {
        names.push(name(cursor, version)?);
    }
    let mut members = Vec::new();
    for name in names {
        members.push((name, cursor.take(base.size)?.to_vec()));
    }
    Ok(Class::Enumeration {
        base: Box::new(base),
        members,
    })
}

fn array(cursor: &mut Cursor<'_>, version: u8, depth: usize) -> Result<Class, Refusal> {
    let rank = usize::from(cursor.u8()?);
    if version < 3 {
        cursor.skip(3)?;
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(u64::from(cursor.u32()?));
    }
    if version < 3 {
        cursor.skip(rank.saturating_mul(4))?;
    }
    let base = Type::at(cursor, depth.saturating_add(1))?;
    Ok(repeated(base, dims)?.class)
}

/// An array of elements as one element.
fn repeated(base: Type, dims: Vec<u64>) -> Result<Type, Refusal> {
    let count = dims.iter().try_fold(1_u64, |n, d| n.checked_mul(*d));
    let size = count
        .and_then(|n| usize::try_from(n).ok()?.checked_mul(base.size))
        .filter(|n| *n > 0)
        .ok_or("an element that is an array of no or too many elements")?;
    Ok(Type {
        size,
        class: Class::Array {
            base: Box::new(base),
            dims,
        },
    })
}
