//! The order in which things were used.
//!
//! Holds [`Recency`], a list that is relinked in constant time and without asking for memory. Must not know what it orders.

/// Where a thing stands, while it is in the list; what a place of another list or of a removed thing does is unspecified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// No neighbour.
const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Link<T> {
    /// None while the link is free.
    thing: Option<T>,
    older: usize,
    newer: usize,
}

/// Things from the least to the most recently used.
#[derive(Debug)]
pub(super) struct Recency<T> {
    links: Vec<Link<T>>,
    oldest: usize,
    newest: usize,
    /// Free links, by `older`.
    free: usize,
}

impl<T> Default for Recency<T> {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            oldest: NONE,
            newest: NONE,
            free: NONE,
        }
    }
}

impl<T> Recency<T> {
    /// Adds a thing as the most recently used one.
    pub(super) fn push(&mut self, thing: T) -> Place {
        let at = self.free;
        let at = match self.links.get_mut(at) {
            Some(link) => {
                self.free = link.older;
                link.thing = Some(thing);
                at
            }
            None => {
                self.links.push(Link {
                    thing: Some(thing),
                    older: NONE,
                    newer: NONE,
                });
                self.links.len().saturating_sub(1)
            }
        };
        self.join(at);
        Place(at)
    }

    /// Makes a thing the most recently used one.
    pub(super) fn touch(&mut self, Place(at): Place) {
        if at != self.newest {
            self.part(at);
            self.join(at);
        }
    }

    /// Takes a thing out; its place may be given to another.
    pub(super) fn remove(&mut self, Place(at): Place) -> Option<T> {
        self.part(at);
        let link = self.links.get_mut(at)?;
        link.older = self.free;
        self.free = at;
        link.thing.take()
    }

    /// The least recently used thing.
    pub(super) fn oldest(&self) -> Option<&T> {
        self.links.get(self.oldest)?.thing.as_ref()
    }

    /// Links `at` in as the newest.
    fn join(&mut self, at: usize) {
        let before = std::mem::replace(&mut self.newest, at);
        if let Some(link) = self.links.get_mut(at) {
            (link.older, link.newer) = (before, NONE);
        }
        match self.links.get_mut(before) {
            Some(link) => link.newer = at,
            None => self.oldest = at,
        }
    }

    /// Links the neighbours of `at` to each other.
    fn part(&mut self, at: usize) {
        let Some(link) = self.links.get(at) else {
            return;
        };
        let (older, newer) = (link.older, link.newer);
        match self.links.get_mut(older) {
            Some(link) => link.newer = newer,
            None => self.oldest = newer,
        }
        match self.links.get_mut(newer) {
            Some(link) => link.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a vector from the oldest to the newest.
    #[test]
    fn things_leave_in_the_order_of_their_last_use() {
        let mut list = Recency::default();
        let mut model: Vec<(u64, Place)> = Vec::new();
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for turn in 0..20_000_u64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state >> 8).unwrap() % model.len().max(1);
            match state % 8 {
                0..3 => model.push((turn, list.push(turn))),
                3..6 if !model.is_empty() => {
                    let used = model.remove(at);
                    list.touch(used.1);
                    model.push(used);
                }
                6 if !model.is_empty() => {
                    let (thing, place) = model.remove(at);
                    assert_eq!(list.remove(place), Some(thing));
                }
                _ if !model.is_empty() && model.len() > 40 => {
                    for (thing, place) in model.drain(..20) {
                        assert_eq!(list.oldest(), Some(&thing));
                        assert_eq!(list.remove(place), Some(thing));
                    }
                }
                _ => {}
            }
            assert_eq!(list.oldest(), model.first().map(|(thing, _)| thing));
        }
        assert!(list.links.len() < 120, "{} links", list.links.len());
        for (thing, place) in model {
            assert_eq!(list.oldest(), Some(&thing));
            list.remove(place);
        }
        assert_eq!(list.oldest(), None);
    }
}
