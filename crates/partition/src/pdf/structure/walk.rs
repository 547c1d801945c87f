//! The tree of a file that lacks the parent tree, walked as a whole.

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::object::dict::keys::{K, MCID, PG, S};
use hayro_interpret::hayro_syntax::object::{Dict, Name, Object};

use super::super::engine::Tag;
use super::{MAX_DEPTH, MAX_ENTRIES, MAX_PIECES, child_tag, role};

/// An element on the way down the tree.
#[derive(Clone, Copy)]
struct Context {
    page: Option<u32>,
    tag: Tag,
    depth: usize,
}

/// Collects the tags of all marked content from the tree itself.
pub(super) fn walk<'a>(root: &Dict<'a>, roles: &Dict<'a>) -> HashMap<u32, Vec<Tag>> {
    let mut found: HashMap<u32, Vec<Tag>> = HashMap::new();
    let mut order = 0;
    let mut add = |context: Context, mcid: f64| {
        if let (Some(page), true) = (context.page, (0.0..MAX_PIECES as f64).contains(&mcid)) {
            let tags = found.entry(page).or_default();
            let index = mcid as usize;
            // Identifiers count up; a gap larger than what came before is an error.
            if index >= tags.len() && index <= 2 * tags.len() + 1000 {
                tags.resize(index + 1, Tag::default());
            }
            if let Some(slot) = tags.get_mut(index) {
                order += 1;
                *slot = Tag { order, ..context.tag };
            }
        }
    };
    let start = Context {
        page: None,
        tag: Tag::default(),
        depth: 0,
    };
    let (mut visited, mut elements) = (0, 0);
    let mut todo: Vec<(Object<'a>, Context)> = kids(root).into_iter().map(|kid| (kid, start)).collect();
    while let Some((object, context)) = todo.pop() {
        visited += 1;
        if visited > MAX_ENTRIES || context.depth > MAX_DEPTH {
            continue;
        }
        match object {
            Object::Number(number) => add(context, number.as_f64()),
            Object::Dict(dict) => {
                let page = dict.get_ref(PG).map(|page| page.obj_number).or(context.page);
                if let Some(mcid) = dict.get::<f32>(MCID) {
                    add(Context { page, ..context }, f64::from(mcid));
                    continue;
                }
                let Some(name) = dict.get::<Name<'a>>(S) else { continue };
                elements += 1;
                let below = Context {
                    page,
                    tag: child_tag(&role(name, roles), context.tag, elements),
                    depth: context.depth + 1,
                };
                todo.extend(kids(&dict).into_iter().rev().map(|kid| (kid, below)));
            }
            _ => {}
        }
    }
    found
}

fn kids<'a>(dict: &Dict<'a>) -> Vec<Object<'a>> {
    match dict.get::<Object<'a>>(K) {
        Some(Object::Array(array)) => array.iter::<Object<'a>>().take(MAX_PIECES).collect(),
        Some(object) => vec![object],
        None => Vec::new(),
    }
}
