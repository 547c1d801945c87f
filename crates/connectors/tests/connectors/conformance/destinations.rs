//! What every destination must do.

use std::sync::Arc;

use async_trait::async_trait;
use docmill_connectors::{Destination, Document, ErrorKind};
use futures_util::{StreamExt, future};
use serde_json::{Value, json};

use super::error;

/// A destination under test and the service behind it, which holds nothing yet.
#[async_trait]
pub(crate) trait DestinationRig: Send + Sync {
    /// The destination.
    fn destination(&self) -> Arc<dyn Destination>;

    /// The same with credentials that are refused, where there are credentials.
    fn wrong_credentials(&self) -> Option<Arc<dyn Destination>>;

    /// The same for a bucket, table or index that is not there; `None` where the connector makes what it needs.
    fn absent(&self) -> Option<Arc<dyn Destination>>;

    /// The texts of a document's elements, in any order.
    async fn texts(&self, document: &Document) -> Vec<String>;

    /// Elements the service holds in all.
    async fn total(&self) -> usize;

    /// Takes the service down or up again; `false` when that can't be done.
    async fn power(&self, on: bool) -> bool;

    /// Whether the destination looks into the elements; those that write whole files need not.
    fn parses(&self) -> bool {
        true
    }

    /// A text as the service can hold it.
    fn kept(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// Runs the suite.
pub(crate) async fn conforms(rig: &dyn DestinationRig) {
    rig.destination().check().await.expect("the destination is a good one");
    assert_eq!(rig.total().await, 0, "a check leaves nothing behind");
    upserts(rig).await;
    neighbours(rig).await;
    odd_documents(rig).await;
    many_at_once(rig).await;
    refusals(rig).await;
    breakdown(rig).await;
    assert_eq!(rig.total().await, 0, "every document was deleted");
}

/// A document with these element texts, each with an embedding.
pub(crate) fn document(number: u32, name: &str, texts: &[String]) -> Document {
    let elements: Vec<Value> = texts
        .iter()
        .map(|text| {
            json!({
                "type": "NarrativeText",
                // Texts of one length share an id: ids may repeat within a real document too.
                "element_id": format!("{:032x}", text.len()),
                "text": text,
                "metadata": {
                    "filename": name,
                    "page_number": 1,
                    "languages": ["eng"],
                    "data_source": {"version": "1", "record_locator": {"path": name}},
                },
                "embeddings": [0.25, -1.5, 3.0],
            })
        })
        .collect();
    Document {
        record_id: format!("{number:064x}"),
        name: name.into(),
        elements: Value::from(elements).to_string().into(),
    }
}

fn numbered(count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("Element {number} {}", "x".repeat(number)))
        .collect()
}

async fn expect(rig: &dyn DestinationRig, document: &Document, texts: &[String]) {
    let mut stored = rig.texts(document).await;
    let mut expected: Vec<_> = texts.iter().map(|text| rig.kept(text)).collect();
    stored.sort();
    expected.sort();
    let (there, wanted) = (stored.len(), expected.len());
    assert!(
        stored == expected,
        "{:?}: {there} stored, {wanted} expected",
        document.name
    );
}

async fn put(rig: &dyn DestinationRig, number: u32, name: &str, texts: &[String]) -> Document {
    let document = document(number, name, texts);
    rig.destination()
        .put(&document)
        .await
        .unwrap_or_else(|error| panic!("put of {name:?}: {error}"));
    expect(rig, &document, texts).await;
    document
}

async fn delete(rig: &dyn DestinationRig, document: &Document) {
    rig.destination()
        .delete(&document.record_id, &document.name)
        .await
        .expect("a deletion");
    assert_eq!(rig.texts(document).await, [""; 0]);
}

/// Writing again changes nothing; a version with fewer or other elements leaves none of the old ones.
async fn upserts(rig: &dyn DestinationRig) {
    let name = "folder/one.pdf";
    for count in [3, 3, 1, 250, 2, 0, 2] {
        let texts = numbered(count);
        let document = put(rig, 1, name, &texts).await;
        assert_eq!(rig.total().await, count, "no element more");
        rig.destination().put(&document).await.expect("the same again");
        expect(rig, &document, &texts).await;
        assert_eq!(rig.total().await, count, "no element twice");
    }
    let document = put(rig, 1, name, &vec!["twin".to_owned(); 4]).await;
    delete(rig, &document).await;
    delete(rig, &document).await;
}

async fn neighbours(rig: &dyn DestinationRig) {
    let texts = numbered(2);
    let first = put(rig, 1, "folder/one.pdf", &texts).await;
    let second = put(rig, 2, "folder/two.pdf", &texts).await;
    assert_eq!(rig.total().await, 4, "the same elements in two documents are four");
    delete(rig, &first).await;
    expect(rig, &second, &texts).await;
    delete(rig, &second).await;
}

async fn odd_documents(rig: &dyn DestinationRig) {
    let mut texts: Vec<String> = [
        "",
        "nul \0 inside",
        "quote ' \" \\ \u{1f600} \u{202e}",
        "{\"index\":{}}\n{}\n",
        "$1 ?; --",
    ]
    .map(str::to_owned)
    .into();
    texts.push("long \u{e4}".repeat(200_000));
    let names = [
        "",
        "../../up",
        "/absolute",
        "a\0b\nc",
        "C:\\x",
        "\u{202e}fdp.exe",
        "a'; DROP TABLE elements; --",
        "*?%_#",
        &"d\u{e4}/".repeat(600),
    ];
    let mut documents = Vec::new();
    for (number, name) in (10..).zip(names) {
        documents.push(put(rig, number, name, &texts).await);
    }
    for document in &documents {
        expect(rig, document, &texts).await;
        delete(rig, document).await;
    }
    let nonsense = rig.parses().then_some(["", "{}", "[1]", "[{\"text\":"]);
    for nonsense in nonsense.into_iter().flatten() {
        let mut document = document(40, "nonsense", &[]);
        document.elements = nonsense.into();
        let error = error(rig.destination().put(&document).await, "what is no list of elements");
        assert!(!error.retryable());
    }
}

async fn many_at_once(rig: &dyn DestinationRig) {
    let texts = numbered(5);
    let puts = (50..74).map(|number| {
        let texts = &texts;
        async move {
            let name = format!("many/{}/{number}.pdf", number % 3);
            put(rig, number, &name, texts).await
        }
    });
    let documents: Vec<_> = futures_util::stream::iter(puts).buffer_unordered(8).collect().await;
    assert_eq!(rig.total().await, 5 * documents.len());
    future::join_all(documents.iter().map(|document| delete(rig, document))).await;
}

async fn refusals(rig: &dyn DestinationRig) {
    let one = document(1, "one.pdf", &numbered(1));
    if let Some(absent) = rig.absent() {
        for error in [
            error(absent.check().await, "a check of what is absent"),
            error(absent.put(&one).await, "writing to what is absent"),
        ] {
            assert_eq!(error.kind, ErrorKind::Missing, "{error}");
        }
    }
    let Some(wrong) = rig.wrong_credentials() else { return };
    for error in [
        error(wrong.check().await, "a check with wrong credentials"),
        error(wrong.put(&one).await, "writing with wrong credentials"),
        error(
            wrong.delete(&one.record_id, &one.name).await,
            "deleting with wrong credentials",
        ),
    ] {
        assert_eq!(error.kind, ErrorKind::Unauthorized, "{error}");
        assert!(!error.retryable());
    }
}

async fn breakdown(rig: &dyn DestinationRig) {
    let before = put(rig, 1, "one.pdf", &numbered(30)).await;
    let destination = rig.destination();
    destination.check().await.expect("all is well");
    if rig.power(false).await {
        let after = document(1, "one.pdf", &numbered(3));
        let calls = future::join3(
            destination.check(),
            destination.put(&after),
            destination.delete(&before.record_id, &before.name),
        )
        .await;
        for error in [
            error(calls.0, "a check while the service is down"),
            error(calls.1, "writing while the service is down"),
            error(calls.2, "deleting while the service is down"),
        ] {
            assert!(error.retryable(), "{error}");
        }
        assert!(rig.power(true).await);
        expect(rig, &before, &numbered(30)).await;
        destination.put(&after).await.expect("the service is back");
        expect(rig, &after, &numbered(3)).await;
    }
    delete(rig, &before).await;
}
