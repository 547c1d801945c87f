//! Names of languages: those of models, ISO codes, and the scripts they are written in.

/// Model names by what callers and detectors call a language, beyond those that are the same.
const ALIASES: &[(&str, &str)] = &[
    ("en", "eng"),
    ("de", "deu"),
    ("ger", "deu"),
    ("fr", "fra"),
    ("fre", "fra"),
    ("es", "spa"),
    ("it", "ita"),
    ("pt", "por"),
    ("nl", "nld"),
    ("dut", "nld"),
    ("pl", "pol"),
    ("cs", "ces"),
    ("cze", "ces"),
    ("sk", "slk"),
    ("slo", "slk"),
    ("sl", "slv"),
    ("hr", "hrv"),
    ("sr", "srp"),
    ("bg", "bul"),
    ("ru", "rus"),
    ("uk", "ukr"),
    ("be", "bel"),
    ("el", "ell"),
    ("gre", "ell"),
    ("tr", "tur"),
    ("ro", "ron"),
    ("rum", "ron"),
    ("hu", "hun"),
    ("fi", "fin"),
    ("sv", "swe"),
    ("da", "dan"),
    ("no", "nor"),
    ("nb", "nor"),
    ("nob", "nor"),
    ("et", "est"),
    ("lv", "lav"),
    ("lt", "lit"),
    ("ar", "ara"),
    ("arb", "ara"),
    ("fa", "fas"),
    ("per", "fas"),
    ("pes", "fas"),
    ("ur", "urd"),
    ("he", "heb"),
    ("iw", "heb"),
    ("yi", "yid"),
    ("ydd", "yid"),
    ("hi", "hin"),
    ("bn", "ben"),
    ("ta", "tam"),
    ("te", "tel"),
    ("th", "tha"),
    ("vi", "vie"),
    ("id", "ind"),
    ("ms", "msa"),
    ("ja", "jpn"),
    ("ko", "kor"),
    ("zh", "chi_sim"),
    ("zho", "chi_sim"),
    ("chi", "chi_sim"),
    ("cmn", "chi_sim"),
    ("zh-cn", "chi_sim"),
    ("zh-hans", "chi_sim"),
    ("zh-tw", "chi_tra"),
    ("zh-hant", "chi_tra"),
    ("ka", "kat"),
    ("hy", "hye"),
    ("la", "lat"),
];

/// The model, among those installed, for what a caller or a detector calls a language.
pub(crate) fn model<'m>(name: &str, installed: &[&'m str]) -> Option<&'m str> {
    let lower = name.trim().to_ascii_lowercase();
    let find = |wanted: &str| {
        installed
            .iter()
            .find(|model| model.eq_ignore_ascii_case(wanted))
            .copied()
    };
    find(&lower).or_else(|| {
        let (_, alias) = ALIASES.iter().find(|(alias, _)| *alias == lower)?;
        find(alias).or_else(|| if *alias == "chi_sim" { find("chi_tra") } else { None })
    })
}

/// Languages that stand for a script when nothing is known of a text: the one of most readers first.
const SCRIPTS: &[&[&str]] = &[
    &["eng", "deu", "fra", "spa", "ita", "por", "nld", "Latin"],
    &["rus", "ukr", "bul", "srp", "Cyrillic"],
    &["chi_sim", "HanS"],
    &["jpn", "Japanese"],
    &["ara", "fas", "urd", "Arabic"],
    &["ell", "Greek"],
    &["kor", "Hangul"],
    &["heb", "Hebrew"],
    &["chi_tra", "HanT"],
    &["hin", "mar", "nep", "Devanagari"],
    &["tha", "Thai"],
    &["ben", "Bengali"],
    &["tam", "Tamil"],
    &["tel", "Telugu"],
    &["kat", "Georgian"],
    &["hye", "Armenian"],
];

/// One installed language for each script, those of most readers first; never empty when one is installed.
pub(crate) fn representatives(installed: &[&str]) -> Vec<String> {
    let mut found: Vec<String> = SCRIPTS
        .iter()
        .filter_map(|names| names.iter().find(|name| installed.contains(name)))
        .map(|name| (*name).to_owned())
        .collect();
    if found.is_empty() {
        found.extend(installed.iter().take(8).map(|name| (*name).to_owned()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_lead_to_models() {
        let installed = ["chi_tra", "deu", "eng"];
        assert_eq!(model("de", &installed), Some("deu"));
        assert_eq!(model("DEU", &installed), Some("deu"));
        assert_eq!(model("zho", &installed), Some("chi_tra"));
        assert_eq!(model("rus", &installed), None);
    }

    #[test]
    fn one_language_stands_for_each_script() {
        assert_eq!(representatives(&["deu", "ell", "eng", "rus"]), ["eng", "rus", "ell"]);
        assert_eq!(representatives(&["lat"]), ["lat"]);
    }
}
