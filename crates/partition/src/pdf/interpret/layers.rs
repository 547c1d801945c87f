//! Layers of a file (optional content) that are switched off: what they hold is not shown.

use std::collections::HashSet;

use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::object::dict::keys::{BASE_STATE, D, OCGS, OCPROPERTIES, OFF, ON, P, TYPE};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, ObjectIdentifier};

/// Layers listed in one place that are read.
const MAX_LAYERS: usize = 100_000;

/// The layers that are switched off when a file is opened.
pub(in crate::pdf) type HiddenLayers = HashSet<ObjectIdentifier>;

/// Reads which layers are off.
pub(in crate::pdf) fn hidden_layers(pdf: &Pdf) -> HiddenLayers {
    let mut hidden = HiddenLayers::new();
    let xref = pdf.xref();
    let catalog = xref.get::<Dict<'_>>(xref.root_id());
    let Some(properties) = catalog.and_then(|catalog| catalog.get::<Dict<'_>>(OCPROPERTIES)) else {
        return hidden;
    };
    let Some(config) = properties.get::<Dict<'_>>(D) else {
        return hidden;
    };
    if config
        .get::<Name<'_>>(BASE_STATE)
        .is_some_and(|state| state.as_ref() == b"OFF")
    {
        hidden.extend(listed(&properties, OCGS));
    }
    for layer in listed(&config, ON) {
        hidden.remove(&layer);
    }
    hidden.extend(listed(&config, OFF));
    hidden
}

/// The layers an array of references names.
fn listed(dict: &Dict<'_>, key: &[u8]) -> Vec<ObjectIdentifier> {
    let Some(array) = dict.get::<Array<'_>>(key) else {
        return Vec::new();
    };
    let references = array.raw_iter().take(MAX_LAYERS);
    references
        .filter_map(|entry| entry.as_obj_ref().map(Into::into))
        .collect()
}

/// Which of the marked content that is open is shown.
pub(super) struct Layers<'h> {
    hidden: &'h HiddenLayers,
    /// For all marked content that is open, whether it is shown.
    open: Vec<bool>,
}

impl<'h> Layers<'h> {
    pub(super) fn new(hidden: &'h HiddenLayers) -> Self {
        Self {
            hidden,
            open: Vec::new(),
        }
    }

    pub(super) fn is_shown(&self) -> bool {
        self.open.last().copied().unwrap_or(true)
    }

    /// Begins what is in a layer or combination of layers, or in none.
    pub(super) fn begin(&mut self, layer: Option<(&Dict<'_>, Option<ObjectIdentifier>)>) {
        let shown = self.is_shown() && layer.is_none_or(|(dict, id)| self.is_on(dict, id));
        self.open.push(shown);
    }

    pub(super) fn end(&mut self) {
        self.open.pop();
    }

    fn is_on(&self, dict: &Dict<'_>, id: Option<ObjectIdentifier>) -> bool {
        let is_combination = dict.get::<Name<'_>>(TYPE).is_some_and(|name| name.as_ref() == b"OCMD");
        match id {
            Some(id) if !is_combination => !self.hidden.contains(&id),
            _ => self.is_combination_on(dict),
        }
    }

    fn is_combination_on(&self, dict: &Dict<'_>) -> bool {
        let layers = match dict.get::<Array<'_>>(OCGS) {
            Some(_) => listed(dict, OCGS),
            None => dict.get_ref(OCGS).map(Into::into).into_iter().collect(),
        };
        if layers.is_empty() {
            return true;
        }
        let mut off = layers.iter().map(|layer| self.hidden.contains(layer));
        match dict.get::<Name<'_>>(P).as_deref() {
            Some(b"AllOn") => off.all(|off| !off),
            Some(b"AnyOff") => off.any(|off| off),
            Some(b"AllOff") => off.all(|off| off),
            _ => off.any(|off| !off),
        }
    }
}
