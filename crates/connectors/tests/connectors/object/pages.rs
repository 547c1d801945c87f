//! The pages about object stores tell of every setting, and their examples are valid.

use docmill_connectors::{TYPES, open_source};
use docmill_egress::{Egress, Policy};
use docmill_model::connector::ConnectorRole;
use serde_json::Value;

use super::super::conformance::{environment, settings};
use super::super::servers::program;

#[test]
fn pages_tell_of_every_setting_and_their_examples_open() {
    let mut guarded = environment();
    guarded.egress = Egress::new(Policy::default());
    for name in ["s3", "azure", "gcs"] {
        let page = std::fs::read_to_string(program(&format!("docs/connectors/{name}.md"))).expect("the page");
        let table: String = page.lines().filter(|line| line.starts_with("| `")).collect();
        let kind = TYPES.iter().find(|kind| kind.name == name).expect("the type");
        for role in [ConnectorRole::Source, ConnectorRole::Destination] {
            for field in kind.fields(role).expect("both roles") {
                assert!(table.contains(&format!("`{}`", field.name)), "{name}: {}", field.name);
            }
        }
        let (_, example) = page.split_once("-d '").expect("an example");
        let (example, _) = example.split_once("\n}'").expect("its end");
        let body: Value = serde_json::from_str(&format!("{example}\n}}")).expect("JSON");
        assert_eq!(body["type"], name);
        let config = settings(ConnectorRole::Source, name, &body["config"]);
        assert!(open_source(&guarded, name, &config).is_ok(), "{name}");
    }
}
