//! Colours as far as being seen depends on them: white, clear or other.

use hayro_interpret::hayro_syntax::object::dict::keys::N;
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Object, Stream};

use super::super::visibility::Shade;

/// Fills this light are white, of 255.
const WHITE: u8 = 250;
/// Inks this thin are white.
const FAINT: f32 = 0.02;
/// Components that are kept; a space of more has no colour that is told from others.
const MAX_PARTS: usize = 4;

/// What the components of a colour are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Gray,
    Rgb,
    Cmyk,
    Pattern,
    /// Inks, tables and the like, whose colours take setting up a transform to know.
    Other,
}

impl Space {
    /// The space of a name in a content stream, which may be one of the resources.
    pub(super) fn named(name: &Name<'_>, resources: &Dict<'_>) -> Self {
        match Self::device(name.as_ref()) {
            Some(space) => space,
            None => match resources.get::<Object<'_>>(name.as_ref()) {
                Some(Object::Name(name)) => Self::device(name.as_ref()).unwrap_or(Self::Gray),
                Some(Object::Array(array)) => Self::described(&array),
                _ => Self::Gray,
            },
        }
    }

    fn device(name: &[u8]) -> Option<Self> {
        match name {
            b"DeviceGray" | b"G" => Some(Self::Gray),
            b"DeviceRGB" | b"RGB" => Some(Self::Rgb),
            b"DeviceCMYK" | b"CMYK" | b"CalCMYK" => Some(Self::Cmyk),
            b"Pattern" => Some(Self::Pattern),
            _ => None,
        }
    }

    fn described(array: &Array<'_>) -> Self {
        let mut items = array.flex_iter();
        let Some(family) = items.next::<Name<'_>>() else {
            return Self::Gray;
        };
        match family.as_ref() {
            b"CalGray" => Self::Gray,
            b"CalRGB" => Self::Rgb,
            b"ICCBased" => match items
                .next::<Stream<'_>>()
                .and_then(|profile| profile.dict().get::<u32>(N))
            {
                Some(1) => Self::Gray,
                Some(3) => Self::Rgb,
                Some(4) => Self::Cmyk,
                _ => Self::Other,
            },
            name => Self::device(name).unwrap_or(Self::Other),
        }
    }
}

/// What something is painted with.
#[derive(Clone, Copy, Debug)]
pub(in crate::pdf) struct Colour {
    space: Space,
    parts: [f32; MAX_PARTS],
    count: usize,
    /// Painted with a pattern.
    patterned: bool,
    /// 0 for clear to 1.
    pub(super) opacity: f32,
}

impl Default for Colour {
    fn default() -> Self {
        Self {
            space: Space::Gray,
            parts: [0.0; MAX_PARTS],
            count: 1,
            patterned: false,
            opacity: 1.0,
        }
    }
}

impl Colour {
    /// What a shading is painted with.
    pub(super) fn shading() -> Self {
        Self {
            space: Space::Pattern,
            patterned: true,
            ..Self::default()
        }
    }

    /// Sets a colour of a space of the device.
    pub(super) fn set(&mut self, space: Space, parts: &[f32]) {
        self.space = space;
        self.set_parts(parts.iter().copied());
    }

    /// Sets a space and the colour that it begins with.
    pub(super) fn set_space(&mut self, space: Space) {
        let patterned = self.patterned && space == Space::Pattern;
        match space {
            Space::Cmyk => self.set(space, &[0.0, 0.0, 0.0, 1.0]),
            Space::Rgb | Space::Pattern => self.set(space, &[0.0; 3]),
            Space::Gray | Space::Other => self.set(space, &[0.0]),
        }
        self.patterned = patterned;
    }

    /// Sets the components of a colour of the space that holds.
    pub(super) fn set_parts(&mut self, parts: impl Iterator<Item = f32>) {
        self.count = 0;
        for part in parts {
            if let Some(slot) = self.parts.get_mut(self.count) {
                *slot = part;
            }
            self.count += 1;
        }
        self.patterned = false;
    }

    /// Sets whether a pattern is painted.
    pub(super) fn set_patterned(&mut self, patterned: bool) {
        self.patterned = patterned;
    }

    /// What of it matters to being seen.
    pub(in crate::pdf) fn shade(&self) -> Shade {
        if self.patterned {
            return Shade::Other;
        }
        if self.space == Space::Pattern {
            // The pattern that is to be painted is missing.
            return Shade::Clear;
        }
        if self.count == 4 {
            // To turn inks into light would take long.
            let blank = self.parts.iter().all(|ink| *ink <= FAINT);
            return if blank { Shade::White } else { Shade::Other };
        }
        if level(self.opacity) == 0 {
            return Shade::Clear;
        }
        let [first, second, third, _] = self.parts.map(|part| level(part) >= WHITE);
        let white = match self.space {
            Space::Gray => self.count > 0 && first,
            Space::Rgb => self.count > 2 && first && second && third,
            Space::Cmyk | Space::Pattern | Space::Other => false,
        };
        if white { Shade::White } else { Shade::Other }
    }
}

/// A component of 0 to 1 as one of 0 to 255; what is no number is 0.
fn level(part: f32) -> u8 {
    (part * 255.0 + 0.5) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shade(space: Space, parts: &[f32]) -> Shade {
        let mut colour = Colour::default();
        colour.set(space, parts);
        colour.shade()
    }

    #[test]
    fn white_is_told_in_every_space() {
        assert_eq!(shade(Space::Gray, &[1.0]), Shade::White);
        assert_eq!(shade(Space::Gray, &[0.5]), Shade::Other);
        assert_eq!(shade(Space::Rgb, &[1.0, 0.99, 1.0]), Shade::White);
        assert_eq!(shade(Space::Rgb, &[1.0, 0.0, 0.0]), Shade::Other);
        assert_eq!(shade(Space::Cmyk, &[0.0, 0.0, 0.01, 0.0]), Shade::White);
        assert_eq!(shade(Space::Cmyk, &[0.0, 0.0, 0.0, 1.0]), Shade::Other);
        assert_eq!(shade(Space::Other, &[1.0]), Shade::Other);
    }

    #[test]
    fn what_is_clear_is_not_seen() {
        let mut colour = Colour {
            opacity: 0.001,
            ..Colour::default()
        };
        assert_eq!(colour.shade(), Shade::Clear);
        colour.opacity = 1.0;
        assert_eq!(colour.shade(), Shade::Other);
        colour.set_space(Space::Pattern);
        assert_eq!(colour.shade(), Shade::Clear);
        colour.set_patterned(true);
        assert_eq!(colour.shade(), Shade::Other);
        assert_eq!(Colour::shading().shade(), Shade::Other);
    }
}
