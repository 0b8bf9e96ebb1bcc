//! `trim`: moves the bounds of an axis inward. What is cut is gone: growing again reads fill.

use clap::Args;
use orthant::RegionItem;

use super::grow::{OnArray, shrink_members};
use crate::exit::{Failure, Result};
use crate::selection::{axis_of, parse_all, within};
use crate::session::Session;

/// Arguments of `trim`.
#[derive(Debug, Args)]
pub(crate) struct Trim {
    #[command(flatten)]
    on: OnArray,
    /// Name or number of the axis
    #[arg(long, value_name = "N")]
    axis: String,
    /// Coordinates cut at the low end
    #[arg(
        long,
        value_name = "K",
        allow_hyphen_values = true,
        conflicts_with = "keep"
    )]
    lo: Option<u64>,
    /// Coordinates cut at the high end
    #[arg(
        long,
        value_name = "K",
        allow_hyphen_values = true,
        conflicts_with = "keep"
    )]
    hi: Option<u64>,
    /// Coordinates that stay
    #[arg(long, value_name = "A:B", allow_hyphen_values = true)]
    keep: Option<String>,
    /// Stop at the chunk edge outside, so that no chunk is rewritten
    #[arg(long)]
    aligned: bool,
}

pub(crate) fn run(args: &Trim, session: &Session) -> Result<()> {
    if args.lo.is_none() && args.hi.is_none() && args.keep.is_none() {
        return Err(Failure::usage("trim needs --lo, --hi or --keep"));
    }
    let open = args.on.open(session)?;
    let array = &open.2;
    let axis = axis_of(&args.axis, &array.dims())?;
    let (lo, hi) = match &args.keep {
        None => (args.lo.unwrap_or(0), args.hi.unwrap_or(0)),
        Some(keep) => {
            let domain = array.domain()?;
            let parsed = parse_all(keep)?;
            let [item @ RegionItem::Range { step: 1, .. }] = parsed.items() else {
                return Err(Failure::usage(format!(
                    "--keep {keep}: one range, as -48:0"
                )));
            };
            let items = (0..domain.rank()).map(|i| {
                if i == axis {
                    *item
                } else {
                    RegionItem::from(..)
                }
            });
            let closed = within(&items.collect(), &domain, false)
                .map_err(|f| f.in_file(&open.0.file).in_array(&open.0.slashed()))?;
            let kept = closed.bounds.get(axis).copied().unwrap_or((0, 0));
            let old = domain.bounds().get(axis).copied().unwrap_or((0, 0));
            (kept.0.abs_diff(old.0), old.1.abs_diff(kept.1))
        }
    };
    let receipt = if args.aligned {
        array.trim_aligned(axis, lo, hi)?
    } else {
        array.trim(axis, lo, hi)?
    };
    args.on
        .finish("trim", session, open, shrink_members(&receipt))
}
