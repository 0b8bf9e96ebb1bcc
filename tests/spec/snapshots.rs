//! Generations that are kept: by name, by policy; found again by name, number or time; brought back whole.

use std::ops::ControlFlow;
use std::time::Duration;

use orthant::{
    ArraySpec, At, AttributeValue, CheckLevel, Container, ErrorKind, Problem, Snapshot, Writer,
    region,
};

use crate::medium::fresh;
use crate::support::{reopened, verify};

/// A container whose array `a` of ten elements holds the number of its commit, written by [`step`].
fn numbered() -> (Container, Writer) {
    let c = fresh();
    let w = c.writer().unwrap();
    w.create_array("a", ArraySpec::<i32>::new(region![-5..5]).chunks([4]))
        .unwrap();
    step(&w, 0);
    (c, w)
}

fn step(w: &Writer, n: i32) -> u64 {
    let a = w.array::<i32>("a").unwrap();
    a.write_slice(region![-5..5], &[n; 10]).unwrap();
    a.attributes().set("n", i64::from(n)).unwrap();
    w.message(&format!("step {n}")).unwrap();
    w.commit().unwrap()
}

fn number(s: &Snapshot) -> i32 {
    let a = s.array::<i32>("a").unwrap();
    let all = a.read_vec(region![-5..5]).unwrap();
    assert!(all.iter().all(|v| *v == all[0]), "{all:?}");
    let n = a.attributes().get("n").unwrap();
    assert_eq!(n, Some(AttributeValue::from(i64::from(all[0]))));
    all[0]
}

fn problems(s: &Snapshot) -> Vec<Problem> {
    let mut all = Vec::new();
    let go_on = |_, _| ControlFlow::Continue(());
    s.check(CheckLevel::Data, go_on, |p| all.push(p)).unwrap();
    all
}

fn name(text: &str) -> At {
    At::Name(text.to_owned())
}

#[test]
fn a_retained_generation_opens_by_name_number_and_time_in_every_later_state() {
    let (c, w) = numbered();
    let kept = step(&w, 1);
    let time = c.snapshot().unwrap().time();
    assert_eq!(w.retain("one").unwrap(), kept);
    assert!(c.snapshots().unwrap().is_empty(), "not before the commit");
    for n in 2..9 {
        step(&w, n);
    }
    drop(w);
    for c in [c.clone(), reopened(&c)] {
        let all = c.snapshots().unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].generation), ("one", kept));
        assert_eq!((all[0].time, all[0].referenced), (time, false));
        for at in [name("one"), At::Generation(kept), At::Time(time)] {
            let old = c.snapshot_at(&at).unwrap();
            assert_eq!((old.generation(), number(&old)), (kept, 1), "{at}");
            assert_eq!(problems(&old).len(), 0);
        }
        let now = c.snapshot().unwrap();
        assert_eq!(number(&now), 8);
        assert_eq!(number(&c.snapshot_at(&At::Time(now.time())).unwrap()), 8);
        assert_eq!(
            number(&c.snapshot_at(&At::Time(now.time() - 1)).unwrap()),
            1,
            "what is not kept cannot be opened"
        );
        verify(&c);
    }
}

#[test]
fn what_is_not_kept_is_not_found_and_the_message_says_what_is() {
    let (c, w) = numbered();
    w.retain("first").unwrap();
    step(&w, 1);
    let e = c.snapshot_at(&name("second")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.to_string().contains("first"), "{e}");
    let kind = |at: At| c.snapshot_at(&at).unwrap_err().kind();
    assert_eq!(kind(At::Generation(1)), ErrorKind::NotFound);
    assert_eq!(kind(At::Generation(99)), ErrorKind::NotFound);
    assert_eq!(kind(At::Time(0)), ErrorKind::NotFound);
}

#[test]
fn names_are_unique_and_a_generation_has_one() {
    let (_c, w) = numbered();
    w.retain("x").unwrap();
    let kind = |name: &str| w.retain(name).unwrap_err().kind();
    assert_eq!(kind("y"), ErrorKind::AlreadyExists, "the same generation");
    step(&w, 1);
    assert_eq!(kind("x"), ErrorKind::AlreadyExists);
    for bad in ["", "gen:4", "2026-01-01T00:00:00Z", "a\nb", "e\u{301}"] {
        assert_eq!(kind(bad), ErrorKind::InvalidArgument, "{bad:?}");
    }
    assert_eq!(kind(&"n".repeat(256)), ErrorKind::InvalidArgument);
    w.retain(&"n".repeat(255)).unwrap();
    step(&w, 2);
}

#[test]
fn a_released_name_is_gone_with_the_next_commit_and_can_be_given_again() {
    let (c, w) = numbered();
    w.retain("x").unwrap();
    step(&w, 1);
    assert_eq!(w.release("y").unwrap_err().kind(), ErrorKind::NotFound);
    w.release("x").unwrap();
    assert_eq!(c.snapshots().unwrap().len(), 1, "not before the commit");
    w.retain("x").unwrap();
    step(&w, 2);
    let all = c.snapshots().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(number(&c.snapshot_at(&name("x")).unwrap()), 1);
}

#[test]
fn an_abort_forgets_what_was_retained_and_released() {
    let (c, w) = numbered();
    w.retain("x").unwrap();
    step(&w, 1);
    w.retain("y").unwrap();
    w.release("x").unwrap();
    w.abort();
    step(&w, 2);
    let all = c.snapshots().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].name, "x");
}

#[test]
fn a_policy_keeps_the_last_n_and_another_those_of_an_age() {
    let (c, w) = numbered();
    for n in 1..10 {
        w.keep_last("auto-", &format!("auto-{n}"), 3).unwrap();
        step(&w, n);
    }
    let names = |c: &Container| -> Vec<String> {
        c.snapshots().unwrap().into_iter().map(|s| s.name).collect()
    };
    assert_eq!(names(&c), ["auto-7", "auto-8", "auto-9"]);
    for n in 6..9 {
        let old = c.snapshot_at(&name(&format!("auto-{}", n + 1))).unwrap();
        assert_eq!(number(&old), n);
    }
    w.retain("by hand").unwrap();
    step(&w, 10);
    assert!(
        w.keep_for("auto-", Duration::from_secs(3600))
            .unwrap()
            .is_empty()
    );
    let gone = w.keep_for("auto-", Duration::ZERO).unwrap();
    assert_eq!(gone, ["auto-7", "auto-8", "auto-9"]);
    step(&w, 11);
    assert_eq!(names(&c), ["by hand"]);
}

#[test]
fn the_log_tells_every_commit_with_its_message_and_the_name_it_is_kept_under() {
    let (c, w) = numbered();
    let kept = step(&w, 1);
    w.retain("one").unwrap();
    step(&w, 2);
    let log = c.log().unwrap();
    let text: Vec<_> = log.iter().map(|e| e.message.as_str()).collect();
    assert_eq!(text, ["step 0", "step 1", "step 2"]);
    assert!(log.is_sorted_by_key(|e| (e.generation, e.time)));
    assert_eq!(log[1].generation, kept);
    assert_eq!(log[1].snapshot.as_deref(), Some("one"));
    assert_eq!(log[2].snapshot, None);
    assert!(log.iter().all(|e| e.changed > 0 && !e.restore));
    let old = c.snapshot_at(&name("one")).unwrap();
    assert_eq!(
        old.log().unwrap().len(),
        2,
        "an old state knows no later commit"
    );
}

#[test]
fn a_restore_is_a_new_commit_equal_to_the_old_one_and_marked() {
    let (c, w) = numbered();
    let kept = step(&w, 1);
    w.retain("one").unwrap();
    step(&w, 2);
    w.remove("a", false).unwrap();
    w.create_array("b", ArraySpec::<i32>::new(region![0..3]))
        .unwrap()
        .write_slice(region![0..3], &[1, 2, 3])
        .unwrap();
    w.commit().unwrap();
    let old = c.snapshot_at(&name("one")).unwrap();
    w.restore(&old).unwrap();
    w.message("back to one").unwrap();
    let g = w.commit().unwrap();
    let now = c.snapshot().unwrap();
    assert!(now.generation() == g && g > kept);
    assert_eq!(number(&now), 1);
    assert!(now.array::<i32>("b").is_err());
    assert_eq!(c.snapshots().unwrap().len(), 1, "snapshots stay");
    let log = c.log().unwrap();
    let last = log.last().unwrap();
    assert!(last.restore && last.message == "back to one" && last.changed > 0);
    assert_eq!(log.iter().filter(|e| e.restore).count(), 1);
    // Ids are not given out anew: what is created now has its own attributes and chunks.
    w.create_array("c", ArraySpec::<i32>::new(region![-5..5]))
        .unwrap();
    w.commit().unwrap();
    let fresh = c.snapshot().unwrap().array::<i32>("c").unwrap();
    assert_eq!(fresh.read_vec(region![..]).unwrap(), [0; 10]);
    verify(&c);
    verify(&reopened(&c));
}

#[test]
fn a_restore_over_staged_changes_is_refused_and_a_change_after_it_goes_on_top() {
    let (c, w) = numbered();
    w.retain("zero").unwrap();
    step(&w, 1);
    let old = c.snapshot_at(&name("zero")).unwrap();
    let a = w.array::<i32>("a").unwrap();
    a.write_slice(region![0..1], &[7]).unwrap();
    assert_eq!(
        w.restore(&old).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    w.abort();
    w.restore(&old).unwrap();
    a.write_slice(region![0..1], &[7]).unwrap();
    w.commit().unwrap();
    let now = c.snapshot().unwrap().array::<i32>("a").unwrap();
    assert_eq!(
        now.read_vec(region![..]).unwrap(),
        [0, 0, 0, 0, 0, 7, 0, 0, 0, 0]
    );
    let (other, _w) = numbered();
    let foreign = other.snapshot().unwrap();
    assert_eq!(
        w.restore(&foreign).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}
