//! What a page's content stream draws, as far as text and lines need it: an interpreter that keeps no
//! outlines, sets up no colour transforms and decodes no pictures.

pub(super) mod colour;
pub(super) mod layers;
pub(super) mod paths;
mod spaced;
mod state;
pub(super) mod text;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use hayro_interpret::hayro_syntax::content::TypedIter;
use hayro_interpret::hayro_syntax::content::ops::TypedInstruction;
use hayro_interpret::hayro_syntax::object::dict::keys::{
    ANNOTS, AP, AS, BBOX, CA, F, FONT, GROUP, H, HEIGHT, MATRIX, N, OC, RECT, RESOURCES, SHADING, SUBTYPE, W, WIDTH,
};
use hayro_interpret::hayro_syntax::object::{Array, Dict, Name, Number, Object, Rect, Stream, dict_or_stream};
use hayro_interpret::hayro_syntax::page::{Page, Resources};
use hayro_interpret::kurbo::{self, Affine, BezPath, Point, Shape};

use super::device::GlyphDevice;
use colour::{Colour, Space};
use layers::{HiddenLayers, Layers};
use spaced::SpacedText;
use state::{State, States};
use text::Shown;

/// Nesting of forms.
const MAX_DEPTH: usize = 50;
/// Forms drawn per page; forms that draw forms could be without end.
const MAX_FORMS: usize = 200_000;
/// Flags of annotations that are not shown: hidden, and not on the screen.
const NOT_SHOWN: u32 = 1 << 1 | 1 << 5;

/// Fonts by their names in a content stream.
type FontNames = HashMap<Vec<u8>, Option<usize>>;

/// Draws content streams on a device.
pub(super) struct Interpreter<'i, 'f, 'a> {
    device: &'i mut GlyphDevice<'f, 'a>,
    states: States,
    layers: Layers<'i>,
    path: BezPath,
    /// Where the part of the path that is being drawn began, and where it is.
    start: Point,
    last: Point,
    /// The path is to clip what comes after it.
    clips_next: bool,
    /// Clips that hold: whether they narrow anything.
    clips: Vec<bool>,
    /// What they leave of the page.
    areas: Vec<kurbo::Rect>,
    /// Glyphs that are shown by one operator.
    run: Vec<Shown>,
    spaced: SpacedText,
    /// Outlines of glyphs that are to clip what comes after the text.
    outlines: BezPath,
    depth: usize,
    forms: usize,
}

impl<'i, 'f, 'a> Interpreter<'i, 'f, 'a> {
    /// `transform` takes user space to the page as displayed, whose area is `area`.
    pub(super) fn new(
        device: &'i mut GlyphDevice<'f, 'a>,
        hidden: &'i HiddenLayers,
        transform: Affine,
        area: kurbo::Rect,
    ) -> Self {
        Self {
            device,
            states: States::new(transform),
            layers: Layers::new(hidden),
            path: BezPath::new(),
            start: Point::ZERO,
            last: Point::ZERO,
            clips_next: false,
            clips: Vec::new(),
            areas: vec![area],
            run: Vec::new(),
            spaced: SpacedText::default(),
            outlines: BezPath::new(),
            depth: 0,
            forms: 0,
        }
    }

    /// Draws the appearances of a page's annotations.
    pub(super) fn annotations(&mut self, page: &Page<'a>) {
        let Some(annotations) = page.raw().get::<Array<'a>>(ANNOTS) else {
            return;
        };
        for annotation in annotations.iter::<Dict<'a>>() {
            if annotation.get::<u32>(F).unwrap_or(0) & NOT_SHOWN == 0 {
                self.annotation(&annotation, page.resources());
            }
        }
    }

    /// Draws an appearance so that its box, as its matrix turns it, fills the rectangle of the annotation.
    fn annotation(&mut self, annotation: &Dict<'a>, resources: &Resources<'a>) {
        let (Some(appearance), Some(rect)) = (appearance(annotation), annotation.get::<Rect>(RECT)) else {
            return;
        };
        let Some(form) = Form::new(&appearance) else { return };
        let turned = (form.matrix * form.bbox.to_path(0.1)).bounding_box();
        let rect = kurbo::Rect::new(rect.x0, rect.y0, rect.x1, rect.y1);
        let (x, y) = (rect.width() / turned.width(), rect.height() / turned.height());
        self.save();
        self.now().ctm *= Affine::new([x, 0.0, 0.0, y, rect.x0 - x * turned.x0, rect.y0 - y * turned.y0]);
        self.draw_form(&form, resources);
        self.restore();
    }

    fn now(&mut self) -> &mut State {
        self.states.now_mut()
    }

    fn save(&mut self) {
        self.states.save(self.clips.len());
    }

    fn restore(&mut self) {
        if let Some(clips) = self.states.restore() {
            self.unclip(clips);
        }
    }

    /// Draws a content stream.
    pub(super) fn run(&mut self, mut operators: TypedIter<'_>, resources: &Resources<'a>) {
        let depth = self.states.depth();
        let mut fonts = FontNames::default();
        self.save();
        while let Some(operator) = operators.next() {
            self.draw(&operator, resources, &mut fonts);
        }
        // A path does not go on in another stream.
        self.path.truncate(0);
        self.clips_next = false;
        while self.states.depth() > depth {
            self.restore();
        }
    }

    fn draw(&mut self, operator: &TypedInstruction<'_, '_>, resources: &Resources<'a>, fonts: &mut FontNames) {
        use TypedInstruction as Op;
        match operator {
            Op::SaveState(_) => self.save(),
            Op::RestoreState(_) => self.restore(),
            Op::Transform(m) => self.now().ctm *= affine([m.0, m.1, m.2, m.3, m.4, m.5]),
            Op::SetGraphicsState(name) => {
                if let Some(dict) = resources.get_ext_g_state(name.0) {
                    self.set_state(&dict);
                }
            }
            Op::XObject(name) => {
                if let Some(stream) = resources.get_x_object(name.0) {
                    self.draw_object(&stream, resources);
                }
            }
            Op::InlineImage(image) => self.draw_image(image.0),
            Op::Shading(name) => self.draw_shading(resources.shadings.get::<Object<'a>>(name.0)),
            Op::BeginMarkedContent(mark) => {
                self.layers.begin(None);
                self.device.begin_marked_content(mark.0, None);
            }
            Op::BeginMarkedContentWithProperties(mark) => self.begin_mark(mark.0, mark.1, resources),
            Op::EndMarkedContent(_) => {
                self.layers.end();
                self.device.end_marked_content();
            }
            _ => {
                if !self.draw_path(operator) && !self.set_colour(operator, resources) {
                    self.draw_text(operator, resources, fonts);
                }
            }
        }
    }

    /// Follows an operator on paths; whether it is one.
    fn draw_path(&mut self, operator: &TypedInstruction<'_, '_>) -> bool {
        use TypedInstruction as Op;
        let point = |x: Number, y: Number| Point::new(x.as_f64(), y.as_f64());
        match operator {
            Op::MoveTo(p) => self.move_to(p.0.as_f64(), p.1.as_f64()),
            Op::LineTo(p) => self.line_to(p.0.as_f64(), p.1.as_f64()),
            Op::CubicTo(c) => self.curve_to(Some(point(c.0, c.1)), point(c.2, c.3), point(c.4, c.5)),
            Op::CubicStartTo(c) => self.curve_to(None, point(c.0, c.1), point(c.2, c.3)),
            Op::CubicEndTo(c) => self.curve_to(Some(point(c.0, c.1)), point(c.2, c.3), point(c.2, c.3)),
            Op::RectPath(r) => self.add_rect(r.0.as_f64(), r.1.as_f64(), r.2.as_f64(), r.3.as_f64()),
            Op::ClosePath(_) => self.close_path(),
            Op::FillPathNonZero(_) | Op::FillPathNonZeroCompatibility(_) | Op::FillPathEvenOdd(_) => {
                self.paint_path(false, true, false);
            }
            Op::StrokePath(_) => self.paint_path(false, false, true),
            Op::CloseAndStrokePath(_) => self.paint_path(true, false, true),
            Op::FillAndStrokeNonZero(_) | Op::FillAndStrokeEvenOdd(_) => self.paint_path(false, true, true),
            Op::CloseFillAndStrokeNonZero(_) | Op::CloseFillAndStrokeEvenOdd(_) => self.paint_path(true, true, true),
            Op::EndPath(_) => self.end_path(),
            Op::ClipNonZero(_) | Op::ClipEvenOdd(_) => self.clips_next = true,
            _ => return false,
        }
        true
    }

    fn paint_path(&mut self, close: bool, fill: bool, stroke: bool) {
        if close {
            self.close_path();
        }
        if fill {
            self.fill();
        }
        if stroke {
            self.stroke();
        }
        self.end_path();
    }

    /// Follows an operator on colours; whether it is one.
    fn set_colour(&mut self, operator: &TypedInstruction<'_, '_>, resources: &Resources<'a>) -> bool {
        use TypedInstruction as Op;
        let parts = |parts: [Number; 3]| parts.map(|part| part.as_f32());
        let has_pattern = |name: Option<&Name<'_>>| {
            let pattern = name.and_then(|name| resources.patterns.get::<Object<'_>>(name.as_ref()));
            match pattern {
                Some(Object::Dict(dict)) => dict.contains_key(SHADING),
                Some(Object::Stream(_)) => true,
                _ => false,
            }
        };
        match operator {
            Op::NonStrokeColorDeviceGray(c) => self.now().fill.set(Space::Gray, &[c.0.as_f32()]),
            Op::StrokeColorDeviceGray(c) => self.now().stroke.set(Space::Gray, &[c.0.as_f32()]),
            Op::NonStrokeColorDeviceRgb(c) => self.now().fill.set(Space::Rgb, &parts([c.0, c.1, c.2])),
            Op::StrokeColorDeviceRgb(c) => self.now().stroke.set(Space::Rgb, &parts([c.0, c.1, c.2])),
            Op::NonStrokeColorCmyk(c) => self
                .now()
                .fill
                .set(Space::Cmyk, &[c.0, c.1, c.2, c.3].map(|ink| ink.as_f32())),
            Op::StrokeColorCmyk(c) => self
                .now()
                .stroke
                .set(Space::Cmyk, &[c.0, c.1, c.2, c.3].map(|ink| ink.as_f32())),
            Op::ColorSpaceNonStroke(name) => {
                let space = Space::named(name.0, &resources.color_spaces);
                self.now().fill.set_space(space);
            }
            Op::ColorSpaceStroke(name) => {
                let space = Space::named(name.0, &resources.color_spaces);
                self.now().stroke.set_space(space);
            }
            Op::NonStrokeColor(c) => self.now().fill.set_parts(c.0.iter().map(|part| part.as_f32())),
            Op::StrokeColor(c) => self.now().stroke.set_parts(c.0.iter().map(|part| part.as_f32())),
            Op::NonStrokeColorNamed(c) => {
                let fill = &mut self.now().fill;
                fill.set_parts(c.0.iter().map(|part| part.as_f32()));
                fill.set_patterned(has_pattern(c.1));
            }
            Op::StrokeColorNamed(c) => {
                let stroke = &mut self.now().stroke;
                stroke.set_parts(c.0.iter().map(|part| part.as_f32()));
                stroke.set_patterned(has_pattern(c.1));
            }
            _ => return false,
        }
        true
    }

    /// Sets what a graphics state dictionary has: opacities and the font.
    fn set_state(&mut self, dict: &Dict<'a>) {
        if let Some(opacity) = dict.get::<f32>(CA) {
            self.now().stroke.opacity = opacity;
        }
        if let Some(opacity) = dict.get::<f32>(b"ca") {
            self.now().fill.opacity = opacity;
        }
        if let Some(array) = dict.get::<Array<'a>>(FONT) {
            let mut items = array.flex_iter();
            if let (Some(font), Some(size)) = (items.next::<Dict<'a>>(), items.next::<f32>()) {
                let font = self.device.fonts.load(&font);
                let text = &mut self.now().text;
                (text.font, text.size) = (font, size);
            }
        }
    }

    fn begin_mark(&mut self, tag: &[u8], properties: &Object<'_>, resources: &Resources<'a>) {
        if let Object::Name(name) = properties {
            let dict = resources.properties.get::<Dict<'_>>(name.as_ref());
            let layer = resources.properties.get_ref(name.as_ref());
            let empty = Dict::empty();
            let layer = layer.map(|id| (dict.as_ref().unwrap_or(&empty), Some(id.into())));
            self.layers.begin(layer);
            self.device.begin_marked_content(tag, dict.as_ref());
            return;
        }
        let dict = dict_or_stream(properties).map(|(dict, _)| dict);
        let layer = dict.and_then(|dict| Some((dict.get::<Dict<'_>>(OC).unwrap_or_default(), dict.get_ref(OC)?)));
        self.layers
            .begin(layer.as_ref().map(|(dict, id)| (dict, Some((*id).into()))));
        self.device.begin_marked_content(tag, dict);
    }

    /// Draws a form or picture.
    fn draw_object(&mut self, stream: &Stream<'a>, resources: &Resources<'a>) {
        match stream.dict().get::<Name<'_>>(SUBTYPE).as_deref() {
            Some(b"Image") => self.draw_image(stream),
            Some(b"Form") if self.layers.is_shown() => {
                if let Some(form) = Form::new(stream) {
                    self.draw_form(&form, resources);
                }
            }
            _ => {}
        }
    }

    /// Begins what the layer of a form or picture holds.
    fn begin_layer(&mut self, dict: &Dict<'_>) {
        let layer = dict.get::<Dict<'_>>(OC);
        let id = dict.get_ref(OC).map(Into::into);
        self.layers.begin(layer.as_ref().map(|layer| (layer, id)));
    }

    fn draw_form(&mut self, form: &Form<'a>, resources: &Resources<'a>) {
        if self.depth >= MAX_DEPTH || self.forms >= MAX_FORMS {
            return;
        }
        self.begin_layer(form.stream.dict());
        let decoded = self.layers.is_shown().then(|| form.stream.decoded_data().ok());
        if let Some(Some(operators)) = decoded {
            self.depth += 1;
            self.forms += 1;
            self.path.truncate(0);
            self.save();
            self.now().ctm *= form.matrix;
            if form.stream.dict().get::<Dict<'_>>(GROUP).is_some() {
                // The group as a whole is as opaque as what is painted was to be.
                let state = self.now();
                (state.fill.opacity, state.stroke.opacity) = (1.0, 1.0);
            }
            let shown = (self.states.now().ctm * form.bbox.to_path(0.1)).control_box();
            self.device.push_clip(&shown);
            let own = form.stream.dict().get::<Dict<'a>>(RESOURCES).map(Resources::new);
            self.run(TypedIter::new(&operators), own.as_ref().unwrap_or(resources));
            self.device.pop_clip();
            self.restore();
            self.depth -= 1;
        }
        self.layers.end();
    }

    fn draw_image(&mut self, image: &Stream<'_>) {
        if !self.layers.is_shown() {
            return;
        }
        let dict = image.dict();
        let length = |short, long| dict.get::<u32>(short).or_else(|| dict.get::<u32>(long));
        let (Some(width), Some(height)) = (length(W, WIDTH), length(H, HEIGHT)) else {
            return;
        };
        if width == 0 || height == 0 {
            return;
        }
        self.begin_layer(dict);
        if self.layers.is_shown() {
            let scale = Affine::new([1.0 / f64::from(width), 0.0, 0.0, -1.0 / f64::from(height), 0.0, 1.0]);
            self.device.image((width, height), self.states.now().ctm * scale);
        }
        self.layers.end();
    }

    /// Paints the area that is not clipped with a shading.
    fn draw_shading(&mut self, shading: Option<Object<'_>>) {
        let Some(area) = self.areas.last().copied().filter(|_| self.layers.is_shown()) else {
            return;
        };
        // What a page paints itself is its background.
        if self.depth > 0 && shading.is_some() && area.width() > 0.0 && area.height() > 0.0 {
            self.device
                .rect(&area, Affine::IDENTITY, &Colour::shading(), paths::Painted::Fill);
        }
    }
}

/// A form XObject.
struct Form<'a> {
    stream: Stream<'a>,
    matrix: Affine,
    bbox: kurbo::Rect,
}

impl<'a> Form<'a> {
    fn new(stream: &Stream<'a>) -> Option<Self> {
        let dict = stream.dict();
        let [x0, y0, x1, y1] = dict.get::<[f32; 4]>(BBOX)?.map(f64::from);
        Some(Self {
            stream: stream.clone(),
            matrix: dict.get::<[f64; 6]>(MATRIX).map_or(Affine::IDENTITY, Affine::new),
            bbox: kurbo::Rect::new(x0, y0, x1, y1),
        })
    }
}

/// The appearance of an annotation in the state it is in.
fn appearance<'a>(annotation: &Dict<'a>) -> Option<Stream<'a>> {
    match annotation.get::<Dict<'a>>(AP)?.get::<Object<'a>>(N)? {
        Object::Stream(stream) => Some(stream),
        Object::Dict(states) => {
            let state = annotation.get::<Name<'a>>(AS);
            let named = state.and_then(|state| states.get::<Stream<'a>>(state.as_ref()));
            named.or_else(|| states.get::<Stream<'a>>(b"Off"))
        }
        _ => None,
    }
}

fn affine(numbers: [Number; 6]) -> Affine {
    Affine::new(numbers.map(|number| number.as_f64()))
}
