//! Elements that come from outside: a file, standard input, or a value on the command line.
//!
//! Holds the reading of whole blocks for `put`, `append` and `--index`. Import reads piece by piece and has its own code.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use clap::ValueEnum;
use orthant::{Block, DataType, Elements};

use crate::exit::{Failure, Result};
use crate::npy::{MAGIC, Npy};
use crate::output::csv;

/// How elements are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// NumPy's file
    Npy,
    /// Elements alone: C order, little-endian, packed
    Raw,
    /// Comma-separated elements in C order
    Csv,
}

/// Opens a source file; a folder is refused.
pub(crate) fn open(path: &Path) -> Result<File> {
    let refused = |e: &io::Error| Failure::io("open", path, e);
    let file = File::open(path).map_err(|e| refused(&e))?;
    let metadata = file.metadata().map_err(|e| refused(&e))?;
    if metadata.is_dir() {
        let e = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(refused(&e));
    }
    Ok(file)
}

/// Reads a whole `.npy` file.
pub(crate) fn npy(path: &Path) -> Result<Block> {
    let name = path.display().to_string();
    Npy::open(&name, BufReader::new(open(path)?))?.block(&name)
}

/// Reads a block of `data_type` and `shape` from a file, or from standard input for `-`.
pub(crate) fn block(
    source: &Path,
    format: Option<InputFormat>,
    data_type: &DataType,
    shape: &[u64],
) -> Result<Block> {
    let stdin = source == Path::new("-");
    let name = if stdin {
        "standard input".to_owned()
    } else {
        source.display().to_string()
    };
    let mut input: Box<dyn Read> = if stdin {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(open(source)?))
    };
    let mut head = Vec::new();
    let read = |e: &io::Error| Failure::io("read", source, e);
    (&mut input)
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(|e| read(&e))?;
    let format = match format {
        Some(format) => format,
        None => sniff(&head, source, &name)?,
    };
    let mut input = io::Cursor::new(head).chain(input);
    if format == InputFormat::Npy {
        return Ok(fitted(Npy::open(&name, input)?.block(&name)?, data_type));
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|e| read(&e))?;
    let elements = match format {
        InputFormat::Raw => raw(&name, bytes, data_type, shape)?,
        _ => cells(&name, &bytes, data_type, shape)?,
    };
    Ok(Block {
        data_type: data_type.clone(),
        shape: shape.to_vec(),
        elements,
    })
}

/// NumPy has text and bytes of one width only: as the array's text, bytes or width where nothing is lost by it.
pub(crate) fn fitted(mut block: Block, data_type: &DataType) -> Block {
    use DataType::{Bytes, FixedUtf32, NullTerminatedBytes, RawBytes, String};
    let from = block.data_type.clone();
    let (Elements::Fixed(bytes), Some(from_len)) = (&block.elements, from.item_size()) else {
        return block;
    };
    let items = || bytes.chunks_exact(from_len.max(1));
    let shorn = |item: &[u8]| {
        let kept = item.iter().rposition(|b| *b != 0);
        item.get(..kept.map_or(0, |last| last.saturating_add(1)))
            .unwrap_or_default()
            .into()
    };
    let elements = match (&from, data_type) {
        (FixedUtf32 { .. }, String) => {
            let text = |item: &[u8]| from.element_to_text(item).into_bytes().into();
            Elements::Variable(items().map(text).collect())
        }
        (NullTerminatedBytes { .. }, Bytes) => Elements::Variable(items().map(shorn).collect()),
        (NullTerminatedBytes { length }, RawBytes { length: other }) if length == other => {
            Elements::Fixed(bytes.clone())
        }
        (NullTerminatedBytes { .. }, NullTerminatedBytes { .. })
        | (FixedUtf32 { .. }, FixedUtf32 { .. }) => match data_type.item_size() {
            Some(len) if len > from_len => {
                let mut wide = Vec::new();
                for item in items() {
                    wide.extend_from_slice(item);
                    wide.resize(wide.len().saturating_add(len.saturating_sub(from_len)), 0);
                }
                Elements::Fixed(wide)
            }
            _ => return block,
        },
        _ => return block,
    };
    block.elements = elements;
    block.data_type = data_type.clone();
    block
}

fn sniff(head: &[u8], source: &Path, name: &str) -> Result<InputFormat> {
    if head == MAGIC {
        return Ok(InputFormat::Npy);
    }
    let suffix = source
        .extension()
        .map(|s| s.to_string_lossy().to_ascii_lowercase());
    match suffix.as_deref() {
        Some("raw") => Ok(InputFormat::Raw),
        Some("csv") => Ok(InputFormat::Csv),
        _ => Err(Failure::usage(format!(
            "{name}: not a .npy file, so its format must be given"
        ))
        .help("--format raw or csv")),
    }
}

fn count_of(shape: &[u64]) -> Option<usize> {
    let count = shape.iter().try_fold(1_u64, |n, &e| n.checked_mul(e))?;
    usize::try_from(count).ok()
}

fn wrong_count(name: &str, wanted: Option<usize>, found: &str) -> Failure {
    let wanted = wanted.map_or_else(|| "more than fit in memory".to_owned(), |n| n.to_string());
    Failure::usage(format!(
        "{name}: the selection has {wanted} elements, the source {found}"
    ))
    .expected(wanted, found)
}

fn raw(name: &str, bytes: Vec<u8>, data_type: &DataType, shape: &[u64]) -> Result<Elements> {
    let wanted = count_of(shape);
    if let Some(item) = data_type.item_size() {
        let want_bytes = wanted.and_then(|n| n.checked_mul(item));
        if want_bytes != Some(bytes.len()) {
            let found = format!("{} bytes of {item} an element", bytes.len());
            return Err(wrong_count(name, wanted, &found));
        }
        return Ok(Elements::Fixed(bytes));
    }
    let mut items: Vec<Box<[u8]>> = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((len, tail)) = rest.split_first_chunk::<4>() {
        let len = usize::try_from(u32::from_le_bytes(*len)).unwrap_or(usize::MAX);
        let (item, tail) = tail.split_at_checked(len).ok_or_else(|| {
            Failure::usage(format!("{name}: it ends within element {}", items.len()))
        })?;
        items.push(item.into());
        rest = tail;
    }
    if !rest.is_empty() || wanted != Some(items.len()) {
        return Err(wrong_count(name, wanted, &items.len().to_string()));
    }
    Ok(Elements::Variable(items))
}

fn cells(name: &str, bytes: &[u8], data_type: &DataType, shape: &[u64]) -> Result<Elements> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Failure::usage(format!("{name}: not UTF-8 at byte {}", e.valid_up_to())))?;
    let cells = csv::parse(name, text)?;
    let wanted = count_of(shape);
    if wanted != Some(cells.len()) {
        return Err(wrong_count(name, wanted, &cells.len().to_string()));
    }
    let element = |(i, cell): (usize, &String)| {
        data_type.element_from_text(cell).map_err(|e| {
            let message = format!("{name}: element {i}: {e}");
            Failure::usage(message)
        })
    };
    let parsed = cells.iter().enumerate().map(element);
    Ok(if data_type.is_variable_length() {
        let items = parsed.map(|b| b.map(Vec::into_boxed_slice));
        Elements::Variable(items.collect::<Result<_>>()?)
    } else {
        Elements::Fixed(parsed.collect::<Result<Vec<_>>>()?.concat())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_are_exactly_the_selection() {
        let ok = raw("x", vec![1, 0, 2, 0], &DataType::Int16, &[2]).unwrap();
        assert_eq!(ok, Elements::Fixed(vec![1, 0, 2, 0]));
        assert!(raw("x", vec![1, 0, 2], &DataType::Int16, &[2]).is_err());
        let texts = raw(
            "x",
            vec![1, 0, 0, 0, b'a', 0, 0, 0, 0],
            &DataType::String,
            &[2],
        )
        .unwrap();
        assert_eq!(
            texts,
            Elements::Variable(vec![(*b"a").into(), Box::new([])])
        );
        assert!(raw("x", vec![9, 0, 0, 0, b'a'], &DataType::String, &[1]).is_err());
    }

    #[test]
    fn cells_are_elements_in_c_order_and_a_wrong_one_is_named() {
        let ok = cells("x", b"1,NaN\n-inf,4\n", &DataType::Float32, &[2, 2]).unwrap();
        let Elements::Fixed(bytes) = ok else { panic!() };
        assert_eq!(bytes.len(), 16);
        let e = cells("x", b"1,2,z", &DataType::Int8, &[3]).unwrap_err();
        assert!(e.message().contains("element 2"), "{}", e.message());
        assert!(cells("x", b"1,2", &DataType::Int8, &[3]).is_err());
    }
}
