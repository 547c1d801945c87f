use docmill_model::Document;
use docmill_model::limits::ParseLimits;
use docmill_model::settings::PartitionOptions;

use super::*;

fn read_with(xml: &[u8], options: &PartitionOptions) -> Result<Document, PartitionError> {
    let limits = ParseLimits::default();
    let mut progress = |_| {};
    let mut cx = Context::new(None, options, &limits, &mut progress);
    partition(xml, &mut cx)?;
    Ok(cx.into_document())
}

fn read(xml: &str) -> Result<Document, PartitionError> {
    read_with(xml.as_bytes(), &PartitionOptions::default())
}

fn texts(xml: &str) -> Vec<String> {
    read(xml).unwrap().elements.into_iter().map(|e| e.text).collect()
}

#[test]
fn elements_are_blocks_in_document_order() {
    assert_eq!(
        texts(
            "<?xml version=\"1.0\"?><a>\n <b>First one</b>\n <c><d>Second &amp; &#233;</d><e/></c><![CDATA[<third>]]></a>"
        ),
        ["First one", "Second & é", "<third>"]
    );
    assert_eq!(texts("<a><b>One</b><b>Two</b></a>"), ["One", "Two"]);
}

#[test]
fn mixed_content_stays_together_and_tails_are_kept() {
    assert_eq!(
        texts("<p>See <ref>3</ref> above, <b>or <i>not</i></b>.</p>"),
        ["See 3 above, or not."]
    );
    assert_eq!(texts("<a><name>X</name> and more<b>New</b></a>"), ["X and moreNew"]);
    assert_eq!(texts("<s>Intro\n<p>One</p>\n<p>Two</p></s>"), ["Intro One", "Two"]);
}

#[test]
fn declared_entities_are_never_expanded() {
    let document = read("<!DOCTYPE l [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><l>&x; visible</l>").unwrap();
    assert_eq!(document.elements[0].text, "visible");
    assert_eq!(document.warnings[0].code, WarningCode::PartUnreadable);
    let laughs = "<!DOCTYPE l [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;\">]><l>&b;</l>";
    assert!(read(laughs).unwrap().elements.is_empty());
}

#[test]
fn depth_is_limited() {
    let deep = "<a>".repeat(100_000);
    assert_eq!(
        read(&deep).unwrap_err(),
        PartitionError::limit("max_depth", 512, "levels of nesting")
    );
}

#[test]
fn faults_are_errors_or_end_the_document() {
    assert!(matches!(
        read("<a><b></a>"),
        Err(PartitionError::Corrupt { format: "XML", .. })
    ));
    let document = read("<a><b>Fine</b><c>").unwrap();
    assert_eq!(document.elements[0].text, "Fine");
    let document = read("<a><b>Fine</b></wrong>").unwrap();
    assert_eq!(document.warnings[0].code, WarningCode::Truncated);
}

#[test]
fn tags_can_be_kept() {
    let options = PartitionOptions {
        xml_keep_tags: true,
        ..PartitionOptions::default()
    };
    assert_eq!(read_with(b"<a>x</a>\n", &options).unwrap().elements[0].text, "<a>x</a>");
}

#[test]
fn declared_charset() {
    let xml = b"<?xml version='1.0' encoding='windows-1252'?><a>caf\xe9 \x80</a>";
    let document = read_with(xml, &PartitionOptions::default()).unwrap();
    assert_eq!(document.elements[0].text, "café €");
}
