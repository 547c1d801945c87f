//! Evidence that a text is prose, or a heading.

/// What one pass over a text counts.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Characters that are not white space.
    visible: usize,
    /// Letters, ideographs and the marks that belong to them.
    letters: usize,
    /// Letters of scripts that write no spaces between words.
    unspaced: usize,
    /// Words: runs without white space that hold a letter or digit.
    words: usize,
    /// Words that hold a letter.
    letter_words: usize,
    /// Words that start in upper case.
    capital_words: usize,
    /// Sentences of at least 3 words (or 6 unspaced letters).
    sentences: usize,
    /// Sentences of at least 5 words.
    long_sentences: usize,
    /// Words that are forms of common English verbs, or that stand where only a verb can follow.
    verbs: usize,
    /// Words that end like an English past tense or present participle.
    verb_endings: usize,
    /// Some letter is in lower case or of a script without case.
    has_lower: bool,
    /// The last visible character ends a sentence.
    terminated: bool,
    /// Clause punctuation of scripts without spaces.
    wide_commas: usize,
    last: Option<char>,
}

impl Shape {
    pub(super) fn of(text: &str) -> Self {
        let mut shape = Self::default();
        let (mut words_here, mut unspaced_here) = (0, 0);
        for word in text.split_whitespace() {
            shape.count_chars(word, &mut words_here, &mut unspaced_here);
            shape.count_word(word, &mut words_here);
            let core = word.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '*']);
            if core.ends_with(['.', '!', '?', '…', '؟', '।', '։', '።']) && !is_abbreviation(core) {
                shape.end_sentence(&mut words_here, &mut unspaced_here);
            }
        }
        shape.end_sentence(&mut words_here, &mut unspaced_here);
        shape.last = text.trim_end().chars().next_back();
        let core = text
            .trim_end()
            .trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '」', '』', '）']);
        shape.terminated = core.ends_with(['.', '!', '?', '…', '؟', '।', '։', '።', '。', '！', '？', '．', '｡']);
        shape
    }

    fn count_chars(&mut self, word: &str, words_here: &mut usize, unspaced_here: &mut usize) {
        for c in word.chars() {
            self.visible += 1;
            if c.is_alphabetic() || is_joined_mark(c) {
                self.letters += 1;
                self.has_lower |= !c.is_uppercase();
            }
            if is_unspaced(c) {
                self.unspaced += 1;
                *unspaced_here += 1;
            }
            match c {
                '。' | '！' | '？' | '｡' => self.end_sentence(words_here, unspaced_here),
                '、' | '，' | '；' | '：' => self.wide_commas += 1,
                _ => {}
            }
        }
    }

    fn count_word(&mut self, word: &str, words_here: &mut usize) {
        if !word.chars().any(char::is_alphanumeric) {
            return;
        }
        self.words += 1;
        *words_here += 1;
        let core = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !core.chars().any(char::is_alphabetic) {
            return;
        }
        self.letter_words += 1;
        if core.chars().find(|c| c.is_alphabetic()).is_some_and(char::is_uppercase) {
            self.capital_words += 1;
        }
        if core.is_ascii() || core.contains('’') {
            self.count_verb(core);
        }
    }

    fn count_verb(&mut self, core: &str) {
        let lower = core.to_ascii_lowercase().replace('’', "'");
        if VERBS.binary_search(&lower.as_str()).is_ok()
            || ["n't", "'ll", "'ve", "'re", "'m"]
                .iter()
                .any(|end| lower.ends_with(end))
        {
            self.verbs += 1;
        } else if lower.len() >= 5 && (lower.ends_with("ed") || lower.ends_with("ing")) {
            self.verb_endings += 1;
        }
    }

    fn end_sentence(&mut self, words_here: &mut usize, unspaced_here: &mut usize) {
        if *words_here >= 3 || *unspaced_here >= 6 {
            self.sentences += 1;
        }
        if *words_here >= 5 {
            self.long_sentences += 1;
        }
        (*words_here, *unspaced_here) = (0, 0);
    }

    /// Letters are at least half of what is visible, so not numbers or drawing.
    fn is_wordy(&self) -> bool {
        self.letter_words > 0 && self.letters * 2 >= self.visible
    }

    /// Written as headings are: at most one sentence, most words with a capital.
    fn is_capitalised(&self) -> bool {
        self.sentences <= 1 && (!self.has_lower || self.capital_words * 2 > self.letter_words)
    }

    pub(super) fn is_narrative(&self) -> bool {
        if !self.is_wordy() {
            return false;
        }
        if self.unspaced * 2 > self.letters {
            return self.is_unspaced_narrative();
        }
        if self.is_capitalised() {
            // A sentence of names is still a sentence when it is long and closed.
            return self.has_lower && self.terminated && self.verbs > 0 && self.words >= 8;
        }
        if self.sentences >= 2 || self.words >= 25 {
            return true;
        }
        let closed = self.terminated && self.words >= 4;
        let verb = self.verbs > 0 && self.words >= 3;
        let participle = self.verb_endings > 0 && (self.words >= 8 || (self.terminated && self.words >= 3));
        // No list of verbs for other languages: a long line that is not capitalised throughout is prose.
        closed || verb || participle || self.words >= 14
    }

    fn is_unspaced_narrative(&self) -> bool {
        (self.terminated && self.unspaced >= 6) || (self.wide_commas > 0 && self.unspaced >= 20) || self.unspaced >= 40
    }

    pub(super) fn is_title(&self) -> bool {
        if !self.is_wordy() || self.long_sentences > 1 {
            return false;
        }
        if self.unspaced * 2 > self.letters && (self.unspaced > 40 || self.terminated) {
            return false;
        }
        let last_ok = match self.last {
            Some(',' | ';' | '、' | '，' | '；') => false,
            Some(':' | '：') => self.words <= 4,
            Some('.') => self.words <= 4 && self.has_lower,
            Some(c) => self.has_lower || !c.is_ascii_punctuation(),
            None => false,
        };
        last_ok && self.words <= 12
    }
}

/// Han, kana, Thai, Lao, Khmer, Burmese: written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Marks of Indic and South-East Asian scripts and Hebrew points, which are no letters by themselves.
fn is_joined_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036f}' | '\u{0591}'..='\u{05c7}' | '\u{064b}'..='\u{0652}' | '\u{0900}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// `Dr.`, `e.g.`, `J.`: a full stop that ends no sentence.
fn is_abbreviation(word: &str) -> bool {
    let Some(stem) = word.strip_suffix('.') else {
        return false;
    };
    let stem = stem.trim_start_matches(|c: char| !c.is_alphanumeric());
    let single = stem.chars().count() == 1 && stem.chars().all(char::is_alphabetic);
    single
        || (stem.contains('.') && stem.split('.').all(|part| part.chars().count() <= 2))
        || matches!(
            stem.to_ascii_lowercase().as_str(),
            "mr" | "mrs"
                | "ms"
                | "dr"
                | "prof"
                | "st"
                | "no"
                | "nos"
                | "vs"
                | "etc"
                | "inc"
                | "ltd"
                | "co"
                | "corp"
                | "fig"
                | "figs"
                | "eq"
                | "sec"
                | "ch"
                | "vol"
                | "pp"
                | "cf"
                | "approx"
                | "dept"
                | "jr"
                | "sr"
        )
}

/// Forms of common English verbs that are seldom nouns, sorted for binary search.
const VERBS: &[&str] = &[
    "am",
    "are",
    "ate",
    "be",
    "became",
    "become",
    "becomes",
    "been",
    "began",
    "begins",
    "being",
    "believe",
    "believes",
    "bring",
    "brings",
    "brought",
    "built",
    "came",
    "can",
    "cannot",
    "chose",
    "come",
    "comes",
    "contain",
    "contains",
    "could",
    "did",
    "does",
    "doing",
    "done",
    "felt",
    "find",
    "finds",
    "found",
    "gave",
    "get",
    "gets",
    "give",
    "given",
    "gives",
    "go",
    "goes",
    "gone",
    "got",
    "grew",
    "had",
    "has",
    "have",
    "having",
    "heard",
    "held",
    "include",
    "includes",
    "is",
    "keep",
    "keeps",
    "kept",
    "knew",
    "know",
    "known",
    "knows",
    "led",
    "left",
    "let",
    "lies",
    "lost",
    "made",
    "make",
    "makes",
    "may",
    "meant",
    "met",
    "might",
    "must",
    "need",
    "needs",
    "occur",
    "occurs",
    "paid",
    "provide",
    "provides",
    "ran",
    "read",
    "remain",
    "remains",
    "require",
    "requires",
    "said",
    "sat",
    "saw",
    "say",
    "says",
    "see",
    "seem",
    "seems",
    "seen",
    "sent",
    "shall",
    "should",
    "shown",
    "shows",
    "sold",
    "spent",
    "spoke",
    "stood",
    "take",
    "taken",
    "takes",
    "tell",
    "tells",
    "think",
    "thinks",
    "thought",
    "told",
    "took",
    "understand",
    "understood",
    "use",
    "uses",
    "want",
    "wants",
    "was",
    "went",
    "were",
    "will",
    "won",
    "would",
    "write",
    "writes",
    "written",
    "wrote",
];

#[cfg(test)]
mod tests {
    use super::VERBS;

    #[test]
    fn verbs_are_sorted() {
        assert!(VERBS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
