//! File names meant to do harm.

use serde_json::Value;

use crate::kit::client::{file_ids, text};
use crate::kit::documents::html;
use crate::kit::raw::{self, END, FORM, file, part, request_data};
use crate::kit::{Server, partition_only};

#[tokio::test]
async fn hostile_names_are_shown_tamed_and_never_become_a_path() {
    let server = Server::start().await;
    let client = server.client();
    let long = format!("{}.html", "x".repeat(5_000));
    let long_shown = format!("{}.html", "x".repeat(250));
    let cases: Vec<(&[u8], &str)> = vec![
        (b"../../etc/passwd.html", "passwd.html"),
        (b"/etc/cron.d/evil.html", "evil.html"),
        (b"C:\\Windows\\system32\\a.html", "a.html"),
        (b"..", "file"),
        (b"dir/", "file"),
        (b"   ", "file"),
        ("invoice\u{202e}fdp.html".as_bytes(), "invoicefdp.html"),
        ("naïve 文件 🙂.html".as_bytes(), "naïve 文件 🙂.html"),
        (b"NUL.html", "NUL.html"),
        (b"a%00b%0d%0a.html", "a%00b%0d%0a.html"),
        (b"${jndi:ldap://x}.html", "x}.html"),
        (b"$(touch pwned);`id`.html", "$(touch pwned);`id`.html"),
        (b"'; DROP TABLE jobs; --.html", "'; DROP TABLE jobs; --.html"),
        (
            b"<img src=x onerror=alert(1)>.html",
            "<img src=x onerror=alert(1)>.html",
        ),
        (b"tab\there.html", "tabhere.html"),
        (long.as_bytes(), long_shown.as_str()),
    ];
    for half in cases.chunks(8) {
        let mut body = request_data(&partition_only().to_string());
        for (name, _) in half {
            body.extend(file(name, &html("content", 2)));
        }
        body.extend(END);
        let answer = raw::create(&server, FORM, &body).await;
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        let job = client.ended(text(&answer.json()["id"])).await;
        let id = text(&job["id"]);
        assert_eq!(job["status"], "COMPLETED", "{}", client.failed_files(id).await);
        let details = client.details(id).await;
        for (((_, shown), row), file) in half
            .iter()
            .zip(details["files"].as_array().expect("files"))
            .zip(file_ids(&job))
        {
            assert_eq!(row["document"], *shown);
            assert_eq!(row["state"], "succeeded", "{row}");
            let download = client.get(&format!("/jobs/{id}/download?file_id={file}")).await;
            let offered = download
                .header("content-disposition")
                .expect("a header of plain ASCII")
                .to_owned();
            assert!(
                offered.starts_with("attachment; filename=\"") && !offered.contains(['\r', '\n', '/', '\\']),
                "{offered}"
            );
            assert_eq!(download.ok()[0]["metadata"]["filename"], *shown);
        }
    }
    // Every blob's path is made of ids alone.
    let root = server.data_dir().join("blobs");
    for path in server.files_below("blobs") {
        let key = path
            .strip_prefix(&root)
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        let plain = key
            .trim_end_matches(".json")
            .chars()
            .all(|c| c.is_ascii_hexdigit() || "-/.".contains(c) || "inoutpreadyz".contains(c));
        assert!(plain && !key.contains(".."), "{key}");
    }
    assert!(
        server
            .files_below("..")
            .iter()
            .all(|path| !path.to_string_lossy().contains("pwned"))
    );
    // A name can't write lines or colours into the log.
    let log = server.log();
    assert!(!log.contains('\u{1b}') && !log.contains("\u{202e}"), "{log}");
}

#[tokio::test]
async fn control_characters_in_a_name_are_refused_or_removed() {
    let server = Server::start().await;
    let client = server.client();
    let page = html("control", 1);
    for (name, shown) in [
        (&b"a\0b.html"[..], "ab.html"),
        (b"a\rb.html", "ab.html"),
        (b"a\nb.html", "ab.html"),
        (b"\x1b[31mred.html", "[31mred.html"),
        (b"a\r\nSet-Cookie: x=y\r\n b.html", ""),
    ] {
        let body = [
            request_data(&partition_only().to_string()),
            file(name, &page),
            END.to_vec(),
        ]
        .concat();
        let answer = raw::create(&server, FORM, &body).await;
        match answer.status {
            200 => {
                let job = client.ended(text(&answer.json()["id"])).await;
                let document = client.details(text(&job["id"])).await["files"][0]["document"].clone();
                assert_eq!(document, shown);
            }
            400 | 422 => assert!(answer.json()["code"].is_string()),
            other => panic!("{other}: {}", String::from_utf8_lossy(&answer.body)),
        }
        assert!(!answer.head.contains("set-cookie"));
    }
    client.get("/jobs").await.ok();
}

/// The other ways in which clients write names that are not ASCII.
#[tokio::test]
async fn names_are_read_in_every_spelling_in_use() {
    let server = Server::start().await;
    let client = server.client();
    let page = html("spelling", 1);
    let spellings: [(&[u8], &str); 6] = [
        (b"filename*=UTF-8''na%C3%AFve%20%E6%96%87.html", "naïve 文.html"),
        (
            b"filename=\"fallback.html\"; filename*=utf-8'en'real%2Ehtml",
            "real.html",
        ),
        (b"filename=plain.html", "plain.html"),
        (b"filename=\"with \\\"quotes\\\".html\"", "with \"quotes\".html"),
        (b"filename=\"latin-\xe9.html\"", "latin-\u{fffd}.html"),
        (b"filename=\"semi; name=colon.html\"", "semi; name=colon.html"),
    ];
    let mut body = request_data(&partition_only().to_string());
    for (name, _) in spellings {
        body.extend(part(
            &[b"Content-Disposition: form-data; name=\"input_files\"; ", name].concat(),
            &page,
        ));
    }
    body.extend(END);
    let answer = raw::create(&server, FORM, &body).await;
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let details = client.details(text(&answer.json()["id"])).await;
    let shown: Vec<_> = details["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|row| &row["document"])
        .collect();
    assert_eq!(
        shown,
        spellings.map(|(_, name)| Value::from(name)).iter().collect::<Vec<_>>()
    );
}
