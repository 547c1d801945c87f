//! Chains read and refused; answers and costs in memory. What calls models is tested with the whole program.

use std::collections::BTreeMap;

use docmill_egress::{Egress, Policy};
use docmill_model::chain::{NodeSpec, Problem};
use docmill_model::ids::WorkspaceId;
use docmill_model::provider::Provider;
use docmill_providers::{Price, ProviderSettings, Providers, Secret};
use docmill_store::Cost;
use serde_json::{Value, json};

use super::ledger::MemoryLedger;
use super::{Ledger, ModelConfig, Models, NodeKeys};
use crate::vault::{MARK, Vault, masked};

fn keys() -> NodeKeys {
    NodeKeys {
        vault: Vault::new(&[7; 32]).unwrap(),
        workspace: WorkspaceId::new(),
    }
}

fn models(config: ModelConfig, prices: &[(&str, f64)]) -> Models {
    let price = |per_million: f64| Price {
        input_per_million: per_million,
        output_per_million: per_million,
    };
    let openai = ProviderSettings {
        api_key: Some(Secret::new("server's")),
        prices: prices
            .iter()
            .map(|(model, p)| ((*model).to_owned(), price(*p)))
            .collect(),
        ..ProviderSettings::default()
    };
    let settings = BTreeMap::from([(Provider::OpenAi, openai)]);
    Models::new(Providers::new(Egress::new(Policy::default()), settings), config)
}

fn chain(paid: Value) -> Value {
    json!([{"name": "p", "type": "partition", "subtype": "unstructured_api"}, paid])
}

fn ner(prefix: &str, key: Option<&str>) -> Value {
    json!({"id": "01980000-0000-7000-8000-000000000001", "name": "n", "type": "prompter",
        "subtype": format!("{prefix}_ner"), "settings": {"model": "m", "provider_api_key": key}})
}

fn read(keys: &NodeKeys, nodes: &Value, stored: &[NodeSpec]) -> Result<Vec<NodeSpec>, Vec<Problem>> {
    let models = models(ModelConfig::default(), &[]);
    models
        .read_chain(keys, nodes, stored, &["nodes".into()])
        .map(|(_, specs)| specs)
}

#[test]
fn a_nodes_key_is_sealed_kept_behind_its_mask_and_bound_to_its_place() {
    let keys = keys();
    let specs = read(&keys, &chain(ner("anthropic", Some("sk-own"))), &[]).unwrap();
    let stored = serde_json::to_value(&specs).unwrap();
    assert!(!stored.to_string().contains("sk-own"), "{stored}");
    assert!(stored[1]["settings"]["provider_api_key"][MARK].is_string());
    let shown = masked(&stored[1]["settings"]);
    let mask = shown["provider_api_key"].as_str();

    let models = models(ModelConfig::default(), &[]);
    let chain_to_run = models.stored_chain(&keys, &specs, &[]).unwrap();
    let node = &chain_to_run.nodes()[1];
    assert_eq!(keys.open(node).unwrap().unwrap().expose(), "sk-own");
    assert!(
        chain_to_run.beginning(2).nodes()[1].sealed_key.is_none(),
        "no key goes to a child"
    );

    let again = read(&keys, &chain(ner("anthropic", mask)), &specs).unwrap();
    assert_eq!(again[1].settings, specs[1].settings);
    let moved = read(&keys, &chain(ner("openai", mask)), &specs).unwrap_err();
    assert!(moved[0].msg.contains("give it again"), "{moved:?}");
    let nothing_behind = read(&keys, &chain(ner("anthropic", mask)), &[]).unwrap_err();
    assert!(
        nothing_behind[0].msg.contains("providers.anthropic.api_key"),
        "{nothing_behind:?}"
    );
    let elsewhere = NodeKeys {
        workspace: WorkspaceId::new(),
        ..keys
    };
    assert!(models.stored_chain(&elsewhere, &specs, &[]).is_err());
}

#[test]
fn a_client_can_not_send_what_looks_sealed() {
    let mut nodes = chain(ner("openai", None));
    nodes[1]["settings"]["provider_api_key"] = json!({ MARK: "v1:AAAA" });
    let problems = read(&keys(), &nodes, &[]).unwrap_err();
    assert_eq!(problems[0].kind, "string_type");
}

#[test]
fn what_could_not_be_called_is_refused_with_its_place() {
    let refused = |models: &Models, node: Value| {
        let problems = models
            .read_chain(&keys(), &chain(node), &[], &["nodes".into()])
            .unwrap_err();
        (
            serde_json::to_string(&problems[0].loc).unwrap(),
            problems[0].msg.clone(),
        )
    };
    let bounded = ModelConfig {
        budget: Some(1),
        ..ModelConfig::default()
    };
    let priced = models(bounded, &[("dear", 1.0)]);
    let (loc, msg) = refused(&priced, ner("openai", None));
    assert!(
        loc == r#"["nodes",1,"settings"]"# && msg.contains("prices"),
        "{loc} {msg}"
    );
    let mut dear = ner("openai", None);
    dear["settings"]["model"] = "dear".into();
    assert!(priced.read_chain(&keys(), &chain(dear), &[], &[]).is_ok());
    // A key of its own does not make up for an address.
    let (_, msg) = refused(&priced, ner("azure_openai", Some("k")));
    assert!(msg.contains("base_url"), "{msg}");
    let none = Models::none();
    assert!(none.usable().is_empty());
    assert!(none.read_chain(&keys(), &chain(ner("openai", None)), &[], &[]).is_err());
}

fn cost(calls: u64, price: Option<i64>) -> Cost {
    Cost {
        calls,
        price,
        ..Cost::default()
    }
}

#[tokio::test]
async fn memory_keeps_answers_up_to_its_bound_and_adds_up_costs() {
    let ledger = MemoryLedger::new(10);
    let answer = |key: &str, bytes: usize| vec![(key.to_owned(), vec![0; bytes])];
    ledger
        .record(2, cost(1, Some(3)), answer("a", 6), Vec::new())
        .await
        .unwrap();
    ledger
        .record(1, cost(1, None), answer("b", 6), Vec::new())
        .await
        .unwrap();
    ledger
        .record(2, cost(2, Some(4)), Vec::new(), Vec::new())
        .await
        .unwrap();
    let keys = ["a".to_owned(), "b".to_owned()];
    let found = ledger.answers(&keys).await.unwrap();
    assert_eq!(found.len(), 1, "the second was too much");
    ledger.forget(vec!["a".into()]).await.unwrap();
    ledger
        .record(1, cost(0, None), answer("b", 6), Vec::new())
        .await
        .unwrap();
    assert_eq!(ledger.answers(&keys).await.unwrap()[0].0, "b");
    assert_eq!(ledger.spent().await.unwrap(), 7);
    let costs: Vec<_> = ledger
        .costs()
        .into_iter()
        .map(|(node, cost)| (node, cost.calls, cost.price))
        .collect();
    assert_eq!(costs, [(1, 1, None), (2, 3, Some(7))]);
}
