//! The corpus against the library.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use orthant::{
    CheckLevel, Container, Elements, Error, ErrorKind, OpenOptions, Problem, Region, RegionItem,
    Snapshot,
};

use crate::heap::peak_of;
use crate::hostile::cases::{Case, Expect, FINE, GOOD};
use crate::hostile::corpus;
use crate::support::figure;

/// No case takes longer.
const LONGEST: Duration = Duration::from_secs(1);

/// What came of a case, as a sentence where it is not what was expected.
fn judge(case: &Case, options: &OpenOptions) -> Result<(), String> {
    let wrong = |found: &dyn std::fmt::Debug| Err(format!("{:?}, found {found:?}", case.expect));
    let snapshot = match options
        .from_bytes(case.bytes.clone())
        .and_then(|c| c.snapshot())
    {
        Ok(snapshot) => snapshot,
        Err(e) => {
            return match &case.expect {
                Expect::Refused(kind) if e.kind() == *kind => Ok(()),
                _ => wrong(&e),
            };
        }
    };
    match &case.expect {
        Expect::Refused(_) => return wrong(&"a container"),
        Expect::Bad(kind) => match whole(&snapshot, "bad") {
            Err(e) if e.kind() == *kind => {}
            other => return wrong(&other),
        },
        Expect::Reads(right) => match whole(&snapshot, "bad") {
            Ok(cells) if cells == *right => {}
            other => return wrong(&other),
        },
        Expect::OnlyParts(kind) => {
            match whole(&snapshot, "bad") {
                Err(e) if e.kind() == *kind => {}
                other => return wrong(&other),
            }
            match corner(&snapshot, "bad") {
                Ok(cells) if cells.iter().all(|c| *c == 0) => {}
                other => return wrong(&other),
            }
        }
        Expect::Walk(kind) => {
            let end = snapshot
                .walk()
                .and_then(|walk| walk.take(1000).try_for_each(|member| member.map(|_| ())));
            match end {
                Err(e) if e.kind() == *kind => {}
                other => return wrong(&other),
            }
        }
        Expect::Listed(kind) => {
            let array = snapshot.dyn_array("bad");
            match array.and_then(|a| a.chunks()) {
                Err(e) if e.kind() == *kind => {}
                other => return wrong(&other),
            }
            match whole(&snapshot, "bad") {
                Ok(cells) if cells == FINE => {}
                other => return wrong(&other),
            }
        }
        Expect::Attributes(kind) => {
            let array = snapshot.dyn_array("bad");
            match array.and_then(|a| a.attributes().list()) {
                Err(e) if e.kind() == *kind => {}
                other => return wrong(&other),
            }
        }
    }
    // Damage stays where it is: what the index has can be read. (A walk in circles is told when it is walked.)
    let untouched = !matches!(case.expect, Expect::Bad(_)) || !case.name.starts_with("tree_");
    if untouched {
        match whole(&snapshot, "good") {
            Ok(cells) if cells == GOOD => {}
            other => return wrong(&("the neighbour", other)),
        }
    }
    Ok(())
}

fn cells(elements: Elements) -> Vec<u8> {
    match elements {
        Elements::Fixed(bytes) => bytes,
        Elements::Variable(items) => items.concat(),
    }
}

fn whole(snapshot: &Snapshot, path: &str) -> Result<Vec<u8>, Error> {
    let array = snapshot.dyn_array(path)?;
    Ok(cells(array.read(Region::all())?.elements))
}

/// Two elements along each of the first axes, one along the others.
fn corner(snapshot: &Snapshot, path: &str) -> Result<Vec<u8>, Error> {
    let array = snapshot.dyn_array(path)?;
    let domain = array.domain()?;
    let ranges = domain.ranges().enumerate();
    let region =
        ranges.map(|(axis, r)| RegionItem::from(r.start..r.start + 1 + i64::from(axis < 3)));
    Ok(cells(array.read(Region::from_items(region))?.elements))
}

fn checked(case: &Case, options: &OpenOptions) -> Vec<Problem> {
    let mut problems = Vec::new();
    let snapshot = options
        .from_bytes(case.bytes.clone())
        .and_then(|c| c.snapshot());
    if let Ok(snapshot) = snapshot {
        let go_on = |_, _| ControlFlow::Continue(());
        drop(snapshot.check(CheckLevel::Data, go_on, |p| problems.push(p)));
    }
    problems
}

/// Runs every case under both presets, with everything in this thread: memory is counted by thread.
fn each_case(mut f: impl FnMut(&Case, &OpenOptions)) {
    let cases = corpus();
    for case in &cases {
        for options in [OpenOptions::new(), OpenOptions::untrusted()] {
            f(case, &options);
        }
    }
}

#[test]
fn every_case_ends_in_the_error_that_is_written_beside_it() {
    let cases = corpus();
    let names: HashSet<&str> = cases.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "names are unique");
    assert!(cases.len() >= 100);
    let mut wrong = Vec::new();
    each_case(|case, options| {
        if let Err(why) = judge(case, options) {
            wrong.push(format!("{}: {why}", case.name));
        }
    });
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    figure(6, "hostile cases", cases.len() as u64);
}

#[test]
fn check_reports_what_is_wrong_and_nothing_where_all_is_right() {
    let mut wrong = Vec::new();
    each_case(|case, options| {
        let problems = checked(case, options);
        let rules: Vec<u8> = problems.iter().map(|p| p.invariant).collect();
        let found = match (case.check, &case.expect) {
            (Some(rule), _) => rules.contains(&rule),
            (None, Expect::Reads(_)) => true,
            (None, Expect::Refused(_)) => rules.is_empty(),
            (None, Expect::OnlyParts(_)) => true,
            _ => !rules.is_empty(),
        };
        if !found {
            wrong.push(format!(
                "{}: {:?}, found {problems:?}",
                case.name, case.check
            ));
        }
    });
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn no_case_takes_a_second_or_more_than_64_mib_and_four_times_its_file() {
    let (mut slowest, mut largest) = ((Duration::ZERO, String::new()), (0, String::new()));
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread()
        .build()
        .unwrap();
    pool.install(|| {
        each_case(|case, options| {
            let started = Instant::now();
            let ((), peak) = peak_of(|| {
                drop(judge(case, options));
                drop(checked(case, options));
                drop(Container::salvage_bytes(case.bytes.clone(), drop));
            });
            let took = started.elapsed();
            if took > slowest.0 {
                slowest = (took, case.name.clone());
            }
            let most = (64 << 20) + 4 * case.bytes.len();
            assert!(peak <= most, "{}: {peak} bytes, at most {most}", case.name);
            if peak > largest.0 {
                largest = (peak, case.name.clone());
            }
        });
    });
    println!("slowest {slowest:?}, most memory {largest:?}");
    assert!(slowest.0 < LONGEST, "{slowest:?}");
}

/// The test above can fail: a file that really holds more takes more.
#[test]
fn what_a_case_may_take_is_counted() {
    let ((), peak) = peak_of(|| drop(vec![1_u8; 65 << 20]));
    assert!(peak > 64 << 20);
    let sound = corpus().into_iter().find(|c| c.name == "sound").unwrap();
    let lie = Case {
        expect: Expect::Bad(ErrorKind::Corrupt),
        ..sound.clone()
    };
    assert!(judge(&sound, &OpenOptions::new()).is_ok());
    assert!(judge(&lie, &OpenOptions::new()).is_err());
    let torn = Case {
        bytes: sound.bytes[..sound.bytes.len() - 1].to_vec(),
        ..sound
    };
    assert!(judge(&torn, &OpenOptions::new()).is_err());
}
