//! `rechunk`: stores an array in other chunks, shards or codecs. One commit, every block compared.

use std::ops::ControlFlow;

use clap::Args;
use orthant::Rechunk as Wish;

use crate::args::Message;
use crate::describe;
use crate::exit::{Failure, Result};
use crate::json::{answer, text, uint};
use crate::selection::numbers;
use crate::session::{Session, print_json};
use crate::target::Target;
use crate::text::{bytes, count, list};

use super::create::{codecs, named_chunks};

/// Arguments of `rechunk`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  orthant rechunk ocean.orth:/model/temp --chunks 480,32,32
  orthant rechunk ocean.orth:/model/temp --chunks time=24 --codecs shuffle,zstd:9 --memory 1GiB
  orthant rechunk ocean.orth:/model/temp --chunks 8,64,64 --shard 64,512,512")]
pub(crate) struct Rechunk {
    /// FILE:/PATH of the array
    #[arg(value_name = "FILE:/PATH")]
    target: String,
    /// The object's path, where FILE:/PATH cannot be split as meant
    #[arg(long, value_name = "PATH", allow_hyphen_values = true)]
    path: Option<String>,
    /// Elements per axis of a chunk, or NAME=n,.. with the other axes whole
    #[arg(long, value_name = "N,M", allow_hyphen_values = true)]
    chunks: String,
    /// Elements per axis of a shard; --chunks are its inner chunks then
    #[arg(long, value_name = "N,M")]
    shard: Option<String>,
    /// shuffle,zstd:3,crc32c or a profile: default, portable, archive, raw [default: those it has]
    #[arg(long, value_name = "LIST")]
    codecs: Option<String>,
    /// About how much memory to use
    #[arg(long, value_name = "BYTES", default_value = "128MiB", value_parser = size)]
    memory: u64,
    #[command(flatten)]
    message: Message,
}

pub(crate) fn run(args: &Rechunk, session: &Session) -> Result<()> {
    let target = Target::with_path(&args.target, args.path.as_deref())?
        .whole()?
        .object()?;
    let writer = session.writer(&target.file)?;
    let array = writer.root().dyn_array(&target.path)?;
    let (dims, shape) = (array.dims(), array.domain()?.shape());
    let extents = |flag: &str, text: &str| {
        if text.contains('=') {
            named_chunks(text, &dims, &shape)
        } else {
            numbers(flag, text)
        }
    };
    let mut wish = Wish::new(extents("--chunks", &args.chunks)?).memory(args.memory);
    if let Some(text) = &args.shard {
        wish = wish.shards(extents("--shard", text)?);
    }
    if let Some(list) = &args.codecs {
        wish = wish.codecs(codecs(list)?);
    }
    let before = describe::Stored::of(&array)?;
    let bar = session.bar(0, "rechunk");
    let done = writer.rechunk(&target.path, &wish, |done, total| {
        bar.at(done, total);
        ControlFlow::Continue(())
    });
    drop(bar);
    let done = done.map_err(|e| Failure::from(e).of_file(&target.file))?;
    let Some((array, receipt)) = done else {
        return Err(Failure::usage("ended early"));
    };
    let after = describe::Stored::of(&array)?;
    let generation = writer.commit(args.message.message.as_deref())?;
    if session.json() {
        let mut members = describe::array_layout(&array)?;
        members.extend([
            ("passes", uint(receipt.passes)),
            ("chunks_decoded", uint(receipt.chunks_decoded)),
            ("chunks_written", uint(receipt.chunks_written)),
            ("bytes_written", uint(receipt.bytes_written)),
            ("stored_bytes_before", uint(before.bytes)),
            ("stored_bytes", uint(after.bytes)),
            ("codec_list", text(codec_list(&array))),
            ("generation", uint(generation)),
        ]);
        return print_json(&answer("rechunk", members));
    }
    session.note(&format!(
        "{}: {} of {}, {} is now {}",
        target.display(),
        count(after.chunks, "chunk"),
        list(array.shard_shape().unwrap_or_else(|| array.chunk_shape())),
        bytes(before.bytes),
        bytes(after.bytes),
    ));
    Ok(())
}

fn codec_list(array: &orthant::DynArray) -> String {
    let names: Vec<String> = array.codecs().iter().map(describe::codec_text).collect();
    names.join(",")
}

/// `128MiB`, `1GiB`, `4096`: bytes.
fn size(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text.strip_prefix(digits).unwrap_or_default() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        "TiB" | "T" => 1 << 40,
        other => return Err(format!("{other:?} is no unit: B, KiB, MiB, GiB or TiB")),
    };
    let n: u64 = digits
        .trim()
        .parse()
        .map_err(|_| format!("{digits:?} is no whole number"))?;
    n.checked_mul(unit)
        .filter(|n| *n > 0)
        .ok_or_else(|| "at least one byte, below 2^64".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("128MiB"), Ok(128 << 20));
        assert_eq!(size("1G"), Ok(1 << 30));
        for bad in ["", "0", "MiB", "1MB", "-1", "99999999999TiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
