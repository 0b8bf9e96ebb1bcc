//! The protocol of pins and horizon as a model, every interleaving of it.
//!
//! One writer builds generations and overwrites freed space; two readers pin, read and unpin; one reader has no locks and
//! looks at the slots afterwards. Reading the two slots is two steps, between which the writer goes on. A compaction may
//! rename a new file over the old one at any time; the writer looks at the name before each slot write, and may be late.
//! Every step is its own state, so that every order of steps is seen. Three shortcuts that tempt, and a fourth for the
//! rename, are each shown to lose bytes.

use std::collections::HashSet;

/// Generations in the model: 1 and 2 exist at the start.
const LAST: u8 = 5;

/// What the writer is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Writer {
    Idle,
    /// Knows which freed space it may write to: what was freed up to here.
    Building {
        limit: u8,
    },
    /// All but the slot is written; the horizon that it will publish was found before.
    Prepared {
        horizon: u8,
    },
    /// The name was looked at and is ours.
    Checked {
        horizon: u8,
    },
    /// Replaced by a compaction.
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    Idle,
    /// Has read one slot of the first look: its generation.
    HalfLooked {
        first: u8,
    },
    /// Has read both.
    Looked {
        g: u8,
    },
    /// Has locked the byte, and reads the slots again.
    Locked {
        g: u8,
    },
    HalfSure {
        g: u8,
        first: (u8, u8),
    },
    /// Reads.
    Pinned {
        g: u8,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    /// Generation and horizon in the two slots, by generation mod 2.
    slots: [(u8, u8); 2],
    writer: Writer,
    /// Space freed up to this generation may have been overwritten.
    overwritten: u8,
    /// What an unlocked probe at the start of the session said, for the shortcut that does not ask again.
    first_probe: u8,
    readers: [Reader; 2],
    /// The reader without locks: the generation it has bytes of, or idle.
    free_reader: Option<u8>,
    /// The compaction: not begun, copied from this generation, done.
    copied: Option<u8>,
    renamed: bool,
    /// Commits that were acknowledged after the rename by a writer on the old file.
    lost: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Shortcuts {
    /// Overwrites under the horizon that the commit in progress will publish.
    unpublished_horizon: bool,
    /// Asks for pins once a session, not before each build.
    stale_probe: bool,
    /// Reads on after locking without a second look.
    no_second_look: bool,
    /// Renames without the writer's lock, and the writer does not look at the name.
    unseen_rename: bool,
}

impl State {
    fn new() -> Self {
        Self {
            slots: [(2, 1), (1, 0)],
            writer: Writer::Idle,
            overwritten: 0,
            first_probe: u8::MAX,
            readers: [Reader::Idle; 2],
            free_reader: None,
            copied: None,
            renamed: false,
            lost: false,
        }
    }

    fn newest(&self) -> (u8, u8) {
        self.slots[0].max(self.slots[1])
    }

    /// The oldest generation whose byte is locked.
    fn oldest_pin(&self) -> u8 {
        let pins = self.readers.iter().filter_map(|r| match r {
            Reader::Locked { g } | Reader::HalfSure { g, .. } | Reader::Pinned { g } => Some(*g),
            _ => None,
        });
        pins.min().unwrap_or(u8::MAX)
    }

    /// A root of generation `g` is whole while nothing freed after it was overwritten: what is freed at f is reached by
    /// root f - 1 and perhaps by older ones.
    fn whole(&self, g: u8) -> bool {
        self.overwritten <= g
    }

    /// What must never be.
    fn fault(&self) -> Option<&'static str> {
        for reader in &self.readers {
            if let Reader::Pinned { g } = reader
                && !self.whole(*g)
            {
                return Some("a pinned generation was overwritten");
            }
        }
        if !self.slots.iter().all(|(g, _)| self.whole(*g)) {
            return Some("a slot's root was overwritten");
        }
        self.lost
            .then_some("a commit went to a file without a name")
    }

    fn steps(&self, cut: Shortcuts) -> Vec<Self> {
        let mut all = Vec::new();
        self.writer_steps(cut, &mut all);
        for i in 0..self.readers.len() {
            self.reader_steps(i, cut, &mut all);
        }
        // Without locks: bytes are copied, then the slots are read; the answer counts if the horizon has not passed it.
        match self.free_reader {
            None => all.push(Self {
                free_reader: Some(self.newest().0),
                ..self.clone()
            }),
            Some(_) => all.push(Self {
                free_reader: None,
                ..self.clone()
            }),
        }
        self.compaction_steps(cut, &mut all);
        all
    }

    /// An answer without a pin counts only if it is right.
    fn answers_wrongly(&self) -> bool {
        self.free_reader
            .is_some_and(|g| g >= self.newest().1 && !self.whole(g))
    }

    fn writer_steps(&self, cut: Shortcuts, all: &mut Vec<Self>) {
        let (g, horizon) = self.newest();
        let next = |writer: Writer| Self {
            writer,
            ..self.clone()
        };
        match self.writer {
            Writer::Idle if g < LAST => {
                if self.renamed && !cut.unseen_rename {
                    // Taking the lock again, it looks at the name.
                    all.push(next(Writer::Stopped));
                    return;
                }
                let probe = if cut.stale_probe {
                    self.first_probe
                } else {
                    self.oldest_pin()
                };
                let published = if cut.unpublished_horizon { g } else { horizon };
                all.push(next(Writer::Building {
                    limit: published.min(probe),
                }));
            }
            Writer::Building { limit } => {
                let horizon = g.min(self.oldest_pin()).max(horizon);
                // Overwrites what it may, or does not need to.
                all.push(Self {
                    overwritten: self.overwritten.max(limit),
                    ..next(Writer::Prepared { horizon })
                });
                all.push(next(Writer::Prepared { horizon }));
            }
            Writer::Prepared { horizon } => {
                let stops = self.renamed && !cut.unseen_rename;
                all.push(next(if stops {
                    Writer::Stopped
                } else {
                    Writer::Checked { horizon }
                }));
            }
            Writer::Checked { horizon } => {
                let generation = g + 1;
                let mut after = next(Writer::Idle);
                after.slots[usize::from(generation % 2)] = (generation, horizon);
                after.lost |= self.renamed;
                all.push(after);
            }
            Writer::Idle | Writer::Stopped => {}
        }
    }

    fn reader_steps(&self, i: usize, cut: Shortcuts, all: &mut Vec<Self>) {
        let mut next = |reader: Reader| {
            let mut after = self.clone();
            after.readers[i] = reader;
            all.push(after);
        };
        match self.readers[i] {
            Reader::Idle => next(Reader::HalfLooked {
                first: self.slots[0].0,
            }),
            Reader::HalfLooked { first } => {
                let second = self.slots[1].0;
                // A pair that two commits overtook is no pair: it is read again.
                if first.abs_diff(second) == 1 {
                    next(Reader::Looked {
                        g: first.max(second),
                    });
                } else {
                    next(Reader::Idle);
                }
            }
            Reader::Looked { g } => {
                if cut.no_second_look {
                    next(Reader::Pinned { g });
                } else {
                    next(Reader::Locked { g });
                }
            }
            Reader::Locked { g } => next(Reader::HalfSure {
                g,
                first: self.slots[0],
            }),
            Reader::HalfSure { g, first } => {
                let second = self.slots[1];
                if first.0.abs_diff(second.0) != 1 {
                    next(Reader::Locked { g });
                } else if g >= first.max(second).1 {
                    next(Reader::Pinned { g });
                } else {
                    next(Reader::Idle);
                }
            }
            Reader::Pinned { .. } => next(Reader::Idle),
        }
    }

    fn compaction_steps(&self, cut: Shortcuts, all: &mut Vec<Self>) {
        // It holds the writer's lock from the copy to the rename: no writer is at work meanwhile.
        let locked_out = !cut.unseen_rename && self.writer != Writer::Idle;
        match self.copied {
            None if !locked_out && !self.renamed => {
                all.push(Self {
                    copied: Some(self.newest().0),
                    ..self.clone()
                });
            }
            Some(g) if cut.unseen_rename || g == self.newest().0 && !locked_out => {
                all.push(Self {
                    copied: None,
                    renamed: true,
                    ..self.clone()
                });
            }
            // A compaction that found another generation than it copied begins anew: without the lock's protection it
            // would have lost one.
            Some(_) if !locked_out => all.push(Self {
                copied: None,
                ..self.clone()
            }),
            _ => {}
        }
    }
}

/// Sees every state that can be reached; gives their number and the first fault.
fn explore(cut: Shortcuts) -> (usize, Option<&'static str>) {
    let mut seen = HashSet::from([State::new()]);
    let mut open = vec![State::new()];
    while let Some(state) = open.pop() {
        let fault = state.fault();
        let fault = fault.or(state
            .answers_wrongly()
            .then_some("an answer without a pin was taken for right"));
        if fault.is_some() {
            return (seen.len(), fault);
        }
        for next in state.steps(cut) {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    (seen.len(), None)
}

#[test]
fn no_order_of_steps_lets_a_writer_overwrite_what_a_reader_or_a_slot_needs() {
    let (states, fault) = explore(Shortcuts::default());
    println!("{states} states, {fault:?}");
    assert_eq!(fault, None);
    assert!(states > 50_000, "{states}");
}

fn caught(cut: Shortcuts) {
    let (states, fault) = explore(cut);
    println!("after {states} states: {fault:?}");
    assert!(fault.is_some());
}

#[test]
fn overwriting_under_a_horizon_that_is_not_published_yet_is_caught() {
    caught(Shortcuts {
        unpublished_horizon: true,
        ..Shortcuts::default()
    });
}

#[test]
fn building_without_a_fresh_look_at_the_pins_is_caught() {
    caught(Shortcuts {
        stale_probe: true,
        ..Shortcuts::default()
    });
}

#[test]
fn pinning_without_a_second_look_at_the_slots_is_caught() {
    caught(Shortcuts {
        no_second_look: true,
        ..Shortcuts::default()
    });
}

#[test]
fn a_rename_that_the_writer_does_not_look_for_is_caught() {
    caught(Shortcuts {
        unseen_rename: true,
        ..Shortcuts::default()
    });
}
