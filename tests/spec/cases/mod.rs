//! Cases from public trouble reports against other array containers, file engines and codecs, each stated for orthant:
//! what to do, and the one right result. A test bears the id of its case; where a case lists variants it has several.
//!
//! The wording of the reports is not repeated here. Small inputs stand in `tests/data/cases`.

mod codecs;
mod commit;
mod fill;
mod grid;
mod growth;
mod hostile;
mod messages;
mod names;
mod rules;
mod scale;
mod selections;
mod sharing;
mod types;
