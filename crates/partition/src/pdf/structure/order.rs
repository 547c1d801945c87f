//! The order in which the structure tree has the content of a page.
//!
//! Where a piece of content stands in the tree is told by the places, each among its siblings, of the elements
//! that it is in, from the top down.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use hayro_interpret::hayro_syntax::object::dict::keys::{K, MCID, P, PG};
use hayro_interpret::hayro_syntax::object::{Array, Dict, MaybeRef, Object, ObjectIdentifier};
use hayro_interpret::hayro_syntax::xref::XRef;

use super::{MAX_DEPTH, MAX_ENTRIES};

/// Finds the places of content.
pub(super) struct TreeOrder<'a> {
    xref: &'a XRef,
    /// By the number of an element, the places of the elements below it.
    kids: HashMap<u32, HashMap<u32, u32>>,
    /// The places of elements that have others below them: these may be large and are read once.
    paths: HashMap<u32, Path>,
    /// Entries that were read; enough of them, and the order of the rest is unknown.
    entries: usize,
}

/// The places of an element and of those it is in, from the top; none when the way up is broken.
type Path = Option<Rc<[u32]>>;

impl<'a> TreeOrder<'a> {
    pub(super) fn new(xref: &'a XRef) -> Self {
        Self {
            xref,
            kids: HashMap::new(),
            paths: HashMap::new(),
            entries: 0,
        }
    }

    /// For each piece of content of a page, given the element that owns it, its place among them, from 1; 0 where
    /// nobody knows. `page` is the page's object number.
    pub(super) fn places(&mut self, owners: &[Option<u32>], page: u32) -> Vec<u32> {
        let mut paths: HashMap<u32, Path> = HashMap::new();
        let mut leaves: HashMap<u32, HashMap<u32, u32>> = HashMap::new();
        let mut pieces: Vec<(Rc<[u32]>, u32, usize)> = Vec::new();
        for (mcid, owner) in owners.iter().enumerate() {
            let Some(owner) = *owner else { continue };
            let Some(path) = self.path(owner, &mut paths) else {
                continue;
            };
            let leaf = leaves.entry(owner).or_insert_with(|| self.leaves(owner, page));
            // What an element does not list itself comes first, as it is drawn.
            pieces.push((path, leaf.get(&(mcid as u32)).copied().unwrap_or(0), mcid));
        }
        pieces.sort_by(|a, b| compare(a, b).then(a.2.cmp(&b.2)));
        let mut places = vec![0; owners.len()];
        for (place, (_, _, mcid)) in pieces.iter().enumerate() {
            if let Some(slot) = places.get_mut(*mcid) {
                *slot = u32::try_from(place + 1).unwrap_or(u32::MAX);
            }
        }
        places
    }

    fn element(&self, number: u32) -> Option<Dict<'a>> {
        self.xref.get::<Dict<'a>>(ObjectIdentifier::new(number, 0))
    }

    fn path(&mut self, element: u32, known: &mut HashMap<u32, Path>) -> Path {
        // The way up, until it is known or ends.
        let mut way = Vec::new();
        let mut next = Some(element);
        let mut start: Path = Some(Rc::from([]));
        while let Some(number) = next {
            if let Some(path) = known.get(&number).or(self.paths.get(&number)) {
                start = path.clone();
                break;
            }
            if way.len() > MAX_DEPTH {
                start = None;
                break;
            }
            let above = self.element(number).and_then(|element| element.get_ref(P));
            next = above.map(|above| above.obj_number);
            way.push((number, next));
        }
        let mut path = start;
        for (number, above) in way.into_iter().rev() {
            path = match (path, above) {
                (Some(path), Some(above)) => self
                    .place(above, number)
                    .map(|place| path.iter().copied().chain([place]).collect()),
                // The root.
                (path, None) => path,
                (None, _) => None,
            };
            let paths = match number == element {
                true => &mut *known,
                false => &mut self.paths,
            };
            paths.insert(number, path.clone());
        }
        path
    }

    /// The place of an element among those of its parent.
    fn place(&mut self, parent: u32, element: u32) -> Option<u32> {
        if let Some(kids) = self.kids.get(&parent) {
            return kids.get(&element).copied();
        }
        if self.entries > MAX_ENTRIES {
            return None;
        }
        let mut kids = HashMap::new();
        for (place, kid) in self.kids_of(parent) {
            if let MaybeRef::Ref(reference) = kid {
                kids.entry(reference.obj_number).or_insert(place);
            }
        }
        let place = kids.get(&element).copied();
        self.kids.insert(parent, kids);
        place
    }

    /// The places of an element's own content on a page, by its identifiers.
    fn leaves(&mut self, number: u32, page: u32) -> HashMap<u32, u32> {
        if self.entries > MAX_ENTRIES {
            return HashMap::new();
        }
        let own = self.element(number).and_then(|element| element.get_ref(PG));
        let mut found = HashMap::new();
        for (place, kid) in self.kids_of(number) {
            let (mcid, on) = match kid {
                MaybeRef::NotRef(Object::Number(number)) => (number.as_f64() as u32, own),
                MaybeRef::NotRef(Object::Dict(content)) => match content.get::<u32>(MCID) {
                    Some(mcid) => (mcid, content.get_ref(PG).or(own)),
                    None => continue,
                },
                _ => continue,
            };
            if on.is_none_or(|on| on.obj_number == page || page == 0) {
                found.entry(mcid).or_insert(place);
            }
        }
        found
    }

    /// What an element lists as its content, with places.
    fn kids_of(&mut self, number: u32) -> Vec<(u32, MaybeRef<Object<'a>>)> {
        let Some(element) = self.element(number) else {
            return Vec::new();
        };
        let kids: Vec<MaybeRef<Object<'a>>> = match element.get::<Array<'a>>(K) {
            Some(kids) => kids.raw_iter().take(MAX_ENTRIES).collect(),
            None => match (element.get_ref(K), element.get::<Object<'a>>(K)) {
                (Some(reference), _) => vec![MaybeRef::Ref(reference)],
                (None, Some(kid)) => vec![MaybeRef::NotRef(kid)],
                (None, None) => Vec::new(),
            },
        };
        self.entries = self.entries.saturating_add(kids.len() + 1);
        (0..).zip(kids).collect()
    }
}

/// Compares pieces of content by where they stand in the tree.
fn compare(a: &(Rc<[u32]>, u32, usize), b: &(Rc<[u32]>, u32, usize)) -> Ordering {
    let (a, b) = (a.0.iter().chain([&a.1]), b.0.iter().chain([&b.1]));
    a.cmp(b)
}
