//! Drawn pages, in windows: a child process draws a few, and the next are drawn while these are asked about.

use std::collections::VecDeque;

use bytes::Bytes;

use super::{Failure, Partition};

/// Pages drawn by one child process.
const WINDOW: u32 = 8;

/// A page to show.
pub(super) struct Sheet {
    /// Position, from 0.
    pub(super) index: u32,
    /// The PNG, or why there is none, for people.
    pub(super) png: Result<Bytes, String>,
}

/// The drawn pages of a file, in order.
pub(super) struct Sheets<'a> {
    partition: &'a Partition<'a>,
    /// Pages to draw; all there are, if none are named.
    wanted: Option<VecDeque<u32>>,
    next: u32,
    ready: VecDeque<Sheet>,
    /// Pages of the file, once known; 0 if its format has none.
    pub(super) total: Option<u32>,
    pub(super) filetype: Option<String>,
}

impl<'a> Sheets<'a> {
    pub(super) fn new(partition: &'a Partition<'a>, wanted: Option<VecDeque<u32>>) -> Self {
        Self {
            partition,
            wanted,
            next: 0,
            ready: VecDeque::new(),
            total: None,
            filetype: None,
        }
    }

    /// The next page; none behind the last. Draws a window when none is ready.
    pub(super) async fn next(&mut self) -> Result<Option<Sheet>, Failure> {
        while self.ready.is_empty() {
            let window = self.window();
            if window.is_empty() {
                return Ok(None);
            }
            self.draw(window).await?;
        }
        Ok(self.ready.pop_front())
    }

    /// The pages to draw next.
    fn window(&mut self) -> Vec<u32> {
        match &mut self.wanted {
            Some(wanted) => {
                let count = wanted.len().min(WINDOW as usize);
                wanted.drain(..count).collect()
            }
            None => {
                let end = self.total.unwrap_or(WINDOW).min(self.next.saturating_add(WINDOW));
                let window = (self.next..end).collect();
                self.next = end.max(self.next);
                window
            }
        }
    }

    async fn draw(&mut self, window: Vec<u32>) -> Result<(), Failure> {
        let chain = self.partition.run.chain.beginning(1);
        let drawn = self.partition.child(chain, Some(window.clone()), |_| {}).await?;
        let total = u32::try_from(drawn.pages).unwrap_or(u32::MAX);
        let first = self.partition.options()?.0.starting_page_number;
        let there = window.into_iter().filter(|index| *index < total);
        for (index, png) in there.zip(drawn.outputs) {
            let png = if png.is_empty() {
                let number = Some(first.saturating_add(index));
                let told = drawn.warnings.iter().find(|warning| warning.page_number == number);
                Err(told.map_or_else(|| "it can't be drawn".into(), |warning| warning.message.clone()))
            } else {
                Ok(png)
            };
            self.ready.push_back(Sheet { index, png });
        }
        self.total = Some(total);
        self.filetype = drawn.filetype;
        Ok(())
    }
}
