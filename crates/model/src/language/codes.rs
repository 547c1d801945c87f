//! Language codes people write, to ISO 639-3.

use whatlang::Lang;

/// ISO 639-1, bibliographic ISO 639-2 and OCR model names whose ISO 639-3 code differs.
const ALIASES: &[(&str, &str)] = &[
    ("af", "afr"),
    ("alb", "sqi"),
    ("am", "amh"),
    ("ar", "ara"),
    ("arm", "hye"),
    ("az", "aze"),
    ("baq", "eus"),
    ("be", "bel"),
    ("bg", "bul"),
    ("bn", "ben"),
    ("bur", "mya"),
    ("ca", "cat"),
    ("chi", "zho"),
    ("chi_sim", "zho"),
    ("chi_tra", "zho"),
    ("cs", "ces"),
    ("cy", "cym"),
    ("cze", "ces"),
    ("da", "dan"),
    ("de", "deu"),
    ("dut", "nld"),
    ("el", "ell"),
    ("en", "eng"),
    ("eo", "epo"),
    ("es", "spa"),
    ("et", "est"),
    ("eu", "eus"),
    ("fa", "fas"),
    ("fi", "fin"),
    ("fr", "fra"),
    ("fre", "fra"),
    ("ga", "gle"),
    ("geo", "kat"),
    ("ger", "deu"),
    ("gl", "glg"),
    ("gre", "ell"),
    ("gu", "guj"),
    ("he", "heb"),
    ("hi", "hin"),
    ("hr", "hrv"),
    ("hu", "hun"),
    ("hy", "hye"),
    ("ice", "isl"),
    ("id", "ind"),
    ("is", "isl"),
    ("it", "ita"),
    ("iw", "heb"),
    ("ja", "jpn"),
    ("jv", "jav"),
    ("ka", "kat"),
    ("kk", "kaz"),
    ("km", "khm"),
    ("kn", "kan"),
    ("ko", "kor"),
    ("la", "lat"),
    ("lo", "lao"),
    ("lt", "lit"),
    ("lv", "lav"),
    ("mac", "mkd"),
    ("may", "msa"),
    ("mk", "mkd"),
    ("ml", "mal"),
    ("mn", "mon"),
    ("mr", "mar"),
    ("ms", "msa"),
    ("my", "mya"),
    ("nb", "nob"),
    ("ne", "nep"),
    ("nl", "nld"),
    ("nn", "nno"),
    ("no", "nor"),
    ("or", "ori"),
    ("pa", "pan"),
    ("per", "fas"),
    ("pl", "pol"),
    ("pt", "por"),
    ("ro", "ron"),
    ("ru", "rus"),
    ("rum", "ron"),
    ("si", "sin"),
    ("sk", "slk"),
    ("sl", "slv"),
    ("slo", "slk"),
    ("sq", "sqi"),
    ("sr", "srp"),
    ("sv", "swe"),
    ("sw", "swa"),
    ("ta", "tam"),
    ("te", "tel"),
    ("th", "tha"),
    ("tib", "bod"),
    ("tk", "tuk"),
    ("tl", "tgl"),
    ("tr", "tur"),
    ("uk", "ukr"),
    ("ur", "urd"),
    ("uz", "uzb"),
    ("vi", "vie"),
    ("wel", "cym"),
    ("yi", "yid"),
    ("zh", "zho"),
    ("zu", "zul"),
];

/// The codes as ISO 639-3, without repetition; `auto` and blanks stand for nothing. A code of three
/// letters that needs no change is kept as it is.
pub(super) fn normalise(given: &[String]) -> Vec<String> {
    let mut codes: Vec<String> = Vec::new();
    // One value may hold several, as OCR programs take them: `eng+deu`, `eng,deu`.
    for code in given.iter().flat_map(|value| value.split(['+', ','])) {
        if let Some(code) = normalise_one(code)
            && !codes.contains(&code)
        {
            codes.push(code);
        }
    }
    codes
}

fn normalise_one(code: &str) -> Option<String> {
    let code = code.trim().to_ascii_lowercase();
    let alias = |code: &str| {
        let at = ALIASES.binary_search_by_key(&code, |(alias, _)| alias).ok()?;
        ALIASES.get(at).map(|(_, code)| (*code).to_owned())
    };
    let base = code.split(['-', '_']).next().unwrap_or_default();
    let is_code = base.len() == 3 && base.bytes().all(|b| b.is_ascii_lowercase());
    alias(&code)
        .or_else(|| alias(base))
        .or_else(|| is_code.then(|| base.to_owned()))
}

/// The code of a detected language; macrolanguages where those are what people ask for.
pub(super) fn wire_code(lang: Lang) -> &'static str {
    match lang.code() {
        "cmn" => "zho",
        "pes" => "fas",
        "nob" => "nor",
        "ydd" => "yid",
        code => code,
    }
}

#[cfg(test)]
mod tests {
    use super::ALIASES;

    #[test]
    fn aliases_are_sorted() {
        assert!(ALIASES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
