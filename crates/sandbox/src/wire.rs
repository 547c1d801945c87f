//! The bytes between parent and child.
//!
//! One Unix stream socket carries both directions. The parent sends a fixed header, the request and the input; the
//! child answers with frames: kind (`u8`), payload length (`u32`), payload. All integers are little-endian. The parent
//! trusts nothing that the child sends; the child trusts its parent.

use std::fmt;

use crate::config::{ChildLimits, Level};

const MAGIC: [u8; 4] = *b"DMSB";
const VERSION: u8 = 1;
/// Bytes of the header that opens every conversation.
pub(crate) const HEADER_LEN: usize = 56;
/// Bytes in front of every frame's payload.
pub(crate) const FRAME_HEADER_LEN: usize = 5;

pub(crate) const KIND_PROGRESS: u8 = 1;
pub(crate) const KIND_OUTPUT: u8 = 2;
pub(crate) const KIND_DONE: u8 = 3;
pub(crate) const KIND_FAILED: u8 = 4;

/// What the child is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Do the work.
    Run,
    /// Lock down, report what is enforced, do nothing else.
    Probe,
}

/// The first bytes a child reads: everything it needs to lock itself down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) mode: Mode,
    /// Whether the child takes what its program prepares before it locks itself down.
    pub(crate) prepare: bool,
    /// A child that reaches less than this refuses to read its input.
    pub(crate) min_level: Level,
    pub(crate) parent_pid: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) stack_bytes: u64,
    pub(crate) cpu_secs: u64,
    pub(crate) request_len: u64,
    pub(crate) input_len: u64,
}

impl Header {
    pub(crate) fn new(mode: Mode, min_level: Level, limits: &ChildLimits, request_len: u64, input_len: u64) -> Header {
        Header {
            mode,
            prepare: false,
            min_level,
            parent_pid: std::process::id(),
            memory_bytes: limits.memory_bytes,
            stack_bytes: limits.stack_bytes,
            cpu_secs: limits.cpu_secs.max(1),
            request_len,
            input_len,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[
            VERSION,
            u8::from(self.mode == Mode::Probe),
            self.min_level.to_wire(),
            u8::from(self.prepare),
        ]);
        out.extend_from_slice(&u64::from(self.parent_pid).to_le_bytes());
        for number in [
            self.memory_bytes,
            self.stack_bytes,
            self.cpu_secs,
            self.request_len,
            self.input_len,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// `None` when the bytes are not a header of this version: the program was not started by its own parent side.
    pub(crate) fn decode(bytes: &[u8; HEADER_LEN]) -> Option<Header> {
        let (start, numbers) = bytes.split_at(8);
        let Some((magic, [version, mode, level, prepare])) = start.split_first_chunk::<4>() else {
            return None;
        };
        if *magic != MAGIC || *version != VERSION || *mode > 1 || *prepare > 1 {
            return None;
        }
        let (numbers, _) = numbers.as_chunks::<8>();
        let [parent, memory, stack, cpu, request, input] = numbers else {
            return None;
        };
        Some(Header {
            mode: if *mode == 1 { Mode::Probe } else { Mode::Run },
            prepare: *prepare == 1,
            min_level: Level::from_wire(*level)?,
            parent_pid: u32::try_from(u64::from_le_bytes(*parent)).ok()?,
            memory_bytes: u64::from_le_bytes(*memory),
            stack_bytes: u64::from_le_bytes(*stack),
            cpu_secs: u64::from_le_bytes(*cpu),
            request_len: u64::from_le_bytes(*request),
            input_len: u64::from_le_bytes(*input),
        })
    }
}

/// One message from the child. The payloads are whatever the child wrote: treat them as hostile.
#[derive(Clone, PartialEq, Eq)]
pub enum Frame {
    /// How far the work is. Counters that stand still do not count as progress for the watchdog.
    Progress {
        /// Pages finished so far.
        pages_done: u32,
        /// Pages in all, 0 when not known.
        pages_total: u32,
        /// Elements found so far.
        elements: u32,
    },
    /// A side product, such as a page image.
    Output {
        /// Number given by the child, for example the page.
        index: u32,
        /// Content.
        bytes: Vec<u8>,
    },
    /// The result. Nothing follows.
    Done(Vec<u8>),
    /// The work ended with an orderly error. Nothing follows.
    Failed(Vec<u8>),
}

impl Frame {
    /// `true` for the frame that ends a run.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Frame::Done(_) | Frame::Failed(_))
    }
}

impl fmt::Debug for Frame {
    /// Shows sizes, not content: documents do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Frame::Progress {
                pages_done,
                pages_total,
                elements,
            } => {
                write!(f, "Progress({pages_done}/{pages_total} pages, {elements} elements)")
            }
            Frame::Output { index, bytes } => write!(f, "Output({index}, {} bytes)", bytes.len()),
            Frame::Done(bytes) => write!(f, "Done({} bytes)", bytes.len()),
            Frame::Failed(bytes) => write!(f, "Failed({} bytes)", bytes.len()),
        }
    }
}

/// Why bytes from a child are not acceptable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("frame of unknown kind {0}")]
    UnknownKind(u8),
    #[error("frame of kind {kind} cannot have {len} bytes")]
    BadLength { kind: u8, len: u32 },
    #[error("the frames exceed the output limit")]
    OverBudget,
}

/// Turns the child's bytes into frames, however they are cut.
///
/// Memory grows with the bytes that really arrive, never with the length a frame claims, and never beyond the budget.
#[derive(Debug)]
pub(crate) struct FrameParser {
    budget: u64,
    header: [u8; FRAME_HEADER_LEN],
    header_len: usize,
    /// Kind, claimed length and payload so far of the frame being received.
    current: Option<(u8, u32, Vec<u8>)>,
    finished: bool,
}

impl FrameParser {
    pub(crate) fn new(max_bytes: u64) -> FrameParser {
        FrameParser {
            budget: max_bytes,
            header: [0; FRAME_HEADER_LEN],
            header_len: 0,
            current: None,
            finished: false,
        }
    }

    /// `true` once a terminal frame was delivered. What follows is ignored.
    pub(crate) fn finished(&self) -> bool {
        self.finished
    }

    /// Takes the next bytes and hands every completed frame to `deliver`.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], deliver: &mut dyn FnMut(Frame)) -> Result<(), FrameError> {
        while !self.finished {
            let Some((_, len, payload)) = &mut self.current else {
                bytes = match self.take_header(bytes)? {
                    Some(rest) => rest,
                    None => return Ok(()),
                };
                continue;
            };
            let missing = (*len as usize).saturating_sub(payload.len());
            let (now, rest) = bytes.split_at(missing.min(bytes.len()));
            payload.extend_from_slice(now);
            bytes = rest;
            if payload.len() < *len as usize {
                return Ok(());
            }
            if let Some((kind, len, payload)) = self.current.take() {
                let frame = decode_frame(kind, len, payload)?;
                self.finished = frame.is_terminal();
                deliver(frame);
            }
        }
        Ok(())
    }

    /// Completes the frame header from `bytes`; `None` when more bytes are needed.
    fn take_header<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, FrameError> {
        let missing = FRAME_HEADER_LEN - self.header_len;
        let (now, rest) = bytes.split_at(missing.min(bytes.len()));
        for (slot, byte) in self.header.iter_mut().skip(self.header_len).zip(now) {
            *slot = *byte;
        }
        self.header_len += now.len();
        if self.header_len < FRAME_HEADER_LEN {
            return Ok(None);
        }
        self.header_len = 0;
        let [kind, a, b, c, d] = self.header;
        let len = u32::from_le_bytes([a, b, c, d]);
        check_length(kind, len)?;
        let cost = u64::from(len) + FRAME_HEADER_LEN as u64;
        self.budget = self.budget.checked_sub(cost).ok_or(FrameError::OverBudget)?;
        self.current = Some((kind, len, Vec::new()));
        Ok(Some(rest))
    }
}

fn check_length(kind: u8, len: u32) -> Result<(), FrameError> {
    let ok = match kind {
        KIND_PROGRESS => len == 12,
        KIND_OUTPUT => len >= 4,
        KIND_DONE | KIND_FAILED => true,
        _ => return Err(FrameError::UnknownKind(kind)),
    };
    if ok {
        Ok(())
    } else {
        Err(FrameError::BadLength { kind, len })
    }
}

fn decode_frame(kind: u8, len: u32, mut payload: Vec<u8>) -> Result<Frame, FrameError> {
    let bad = FrameError::BadLength { kind, len };
    match kind {
        KIND_PROGRESS => {
            let (words, _) = payload.as_chunks::<4>();
            let [done, total, elements] = words else {
                return Err(bad);
            };
            Ok(Frame::Progress {
                pages_done: u32::from_le_bytes(*done),
                pages_total: u32::from_le_bytes(*total),
                elements: u32::from_le_bytes(*elements),
            })
        }
        KIND_OUTPUT => {
            let index = u32::from_le_bytes(*payload.first_chunk::<4>().ok_or(bad)?);
            payload.drain(..4);
            Ok(Frame::Output { index, bytes: payload })
        }
        KIND_DONE => Ok(Frame::Done(payload)),
        KIND_FAILED => Ok(Frame::Failed(payload)),
        other => Err(FrameError::UnknownKind(other)),
    }
}

/// Header of a frame that the child is about to write.
pub(crate) fn frame_header(kind: u8, len: u32) -> [u8; FRAME_HEADER_LEN] {
    let [a, b, c, d] = len.to_le_bytes();
    [kind, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(frame: &Frame) -> Vec<u8> {
        let (kind, payload) = match frame {
            Frame::Progress {
                pages_done,
                pages_total,
                elements,
            } => {
                let words = [*pages_done, *pages_total, *elements];
                (KIND_PROGRESS, words.iter().flat_map(|n| n.to_le_bytes()).collect())
            }
            Frame::Output { index, bytes } => (KIND_OUTPUT, [&index.to_le_bytes(), bytes.as_slice()].concat()),
            Frame::Done(bytes) => (KIND_DONE, bytes.clone()),
            Frame::Failed(bytes) => (KIND_FAILED, bytes.clone()),
        };
        [&frame_header(kind, payload.len() as u32), payload.as_slice()].concat()
    }

    fn parse(parser: &mut FrameParser, bytes: &[u8]) -> (Vec<Frame>, Result<(), FrameError>) {
        let mut frames = Vec::new();
        let result = parser.feed(bytes, &mut |f| frames.push(f));
        (frames, result)
    }

    fn any_frame() -> impl Strategy<Value = Frame> {
        prop_oneof![
            any::<(u32, u32, u32)>().prop_map(|(pages_done, pages_total, elements)| Frame::Progress {
                pages_done,
                pages_total,
                elements
            }),
            (any::<u32>(), prop::collection::vec(any::<u8>(), 0..300))
                .prop_map(|(index, bytes)| Frame::Output { index, bytes }),
        ]
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut(frames in prop::collection::vec(any_frame(), 0..8), cut in 1usize..40) {
            let last = Frame::Done(vec![7; 33]);
            let bytes: Vec<u8> = frames.iter().chain([&last]).flat_map(encode).collect();
            let mut parser = FrameParser::new(1 << 20);
            let mut seen = Vec::new();
            for piece in bytes.chunks(cut) {
                let (mut now, result) = parse(&mut parser, piece);
                prop_assert_eq!(result, Ok(()));
                seen.append(&mut now);
            }
            prop_assert!(parser.finished());
            prop_assert_eq!(seen.pop(), Some(last));
            prop_assert_eq!(seen, frames);
        }

        #[test]
        fn garbage_never_yields_more_than_the_budget(
            bytes in prop::collection::vec(prop_oneof![0u8..6, any::<u8>()], 0..4000),
            budget in 0u64..600,
            cut in 1usize..200,
        ) {
            let mut parser = FrameParser::new(budget);
            let mut total = 0u64;
            let mut terminals = 0;
            for piece in bytes.chunks(cut) {
                let (frames, result) = parse(&mut parser, piece);
                for frame in &frames {
                    total += encode(frame).len() as u64;
                    terminals += u32::from(frame.is_terminal());
                }
                if let Some((_, len, payload)) = &parser.current {
                    prop_assert!(payload.len() <= *len as usize);
                    prop_assert!(u64::from(*len) <= budget);
                }
                if result.is_err() {
                    break;
                }
            }
            prop_assert!(total <= budget);
            prop_assert!(terminals <= 1);
        }

        #[test]
        fn headers_of_any_bytes_decode_or_refuse(bytes in prop::array::uniform32(any::<u8>()), tail in any::<[u8; 24]>()) {
            let mut all = [0u8; HEADER_LEN];
            for (slot, byte) in all.iter_mut().zip(bytes.iter().chain(&tail)) {
                *slot = *byte;
            }
            if let Some(header) = Header::decode(&all) {
                prop_assert_eq!(Header::decode(&header.encode().try_into().unwrap()), Some(header));
            }
        }
    }

    #[test]
    fn a_header_round_trips() {
        let header = Header::new(Mode::Probe, Level::BestEffort, &ChildLimits::default(), 17, 1 << 40);
        let bytes: [u8; HEADER_LEN] = header.encode().try_into().unwrap();
        assert_eq!(Header::decode(&bytes), Some(header));
    }

    #[test]
    fn a_lying_length_is_refused_before_any_allocation() {
        let mut parser = FrameParser::new(1 << 20);
        let (frames, result) = parse(&mut parser, &frame_header(KIND_DONE, u32::MAX));
        assert!(frames.is_empty());
        assert_eq!(result, Err(FrameError::OverBudget));
        assert!(parser.current.is_none());
    }

    #[test]
    fn an_accepted_length_does_not_reserve_memory() {
        let mut parser = FrameParser::new(u64::MAX);
        let (_, result) = parse(&mut parser, &[&frame_header(KIND_DONE, u32::MAX)[..], b"abc"].concat());
        assert_eq!(result, Ok(()));
        assert!(parser.current.is_some_and(|(_, _, payload)| payload.capacity() < 4096));
    }

    #[test]
    fn wrong_kinds_and_lengths_are_refused() {
        let of = |kind, len| parse(&mut FrameParser::new(1 << 20), &frame_header(kind, len)).1;
        assert_eq!(of(0, 0), Err(FrameError::UnknownKind(0)));
        assert_eq!(of(9, 1), Err(FrameError::UnknownKind(9)));
        assert_eq!(
            of(KIND_PROGRESS, 11),
            Err(FrameError::BadLength {
                kind: KIND_PROGRESS,
                len: 11
            })
        );
        assert_eq!(
            of(KIND_OUTPUT, 3),
            Err(FrameError::BadLength {
                kind: KIND_OUTPUT,
                len: 3
            })
        );
    }

    #[test]
    fn frames_after_the_terminal_one_are_ignored() {
        let bytes = [Frame::Failed(b"no".to_vec()), Frame::Done(b"yes".to_vec())]
            .map(|f| encode(&f))
            .concat();
        let mut parser = FrameParser::new(1 << 20);
        let (frames, result) = parse(&mut parser, &bytes);
        assert_eq!((frames, result), (vec![Frame::Failed(b"no".to_vec())], Ok(())));
        assert_eq!(parse(&mut parser, b"\xff\xff\xff\xff\xff").1, Ok(()));
    }
}
