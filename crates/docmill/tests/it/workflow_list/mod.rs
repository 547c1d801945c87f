//! The list of workflows: every filter, alone and together, against a model.

mod world;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::kit::client::text;
use crate::kit::{Client, Folders, Server, custom_workflow};
use crate::workflows::places;
use world::{Dice, expected, fill, query};

const QUERIES: usize = 400;

async fn listed(client: &Client, query: &BTreeMap<&str, String>) -> Vec<String> {
    let encode = |value: &String| value.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let query: Vec<_> = query
        .iter()
        .map(|(name, value)| format!("{name}={}", encode(value)))
        .collect();
    let list = client
        .get(&format!("/api/v1/workflows/?{}", query.join("&")))
        .await
        .ok();
    list.as_array()
        .expect("a list")
        .iter()
        .map(|workflow| text(&workflow["id"]).to_owned())
        .collect()
}

#[tokio::test]
async fn every_filter_gives_what_a_model_gives() {
    let mut server = Server::start().await;
    let (status, _) = server.terminate().await;
    assert!(status.success());
    let world = fill(&server).await;
    let server = server.restart().await;
    let client = server.client();
    let mut dice = Dice(0xfeed_beef_cafe_f00d);
    let mut found = 0;
    for _ in 0..QUERIES {
        let query = query(&mut dice, &world);
        let list = listed(&client, &query).await;
        found += usize::from(!list.is_empty());
        assert_eq!(list, expected(&world, &query), "{query:?}");
    }
    assert!(found > QUERIES / 4, "only {found} queries found anything");
    // All pages together are everything, each once, whatever the order.
    for sort in ["id", "name", "status", "workflow_type", "created_at", "updated_at"] {
        let mut all = Vec::new();
        for page in 1.. {
            let query = [
                ("sort_by", sort.to_owned()),
                ("page_size", "1000".to_owned()),
                ("page", page.to_string()),
            ];
            let ids = listed(&client, &BTreeMap::from(query)).await;
            if ids.is_empty() {
                break;
            }
            all.extend(ids);
        }
        let live = world.known.iter().filter(|w| !w.deleted).count();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), live, "{sort}");
    }
    let last = BTreeMap::from([("page", "1000000000000".to_owned()), ("page_size", "1000".to_owned())]);
    assert!(listed(&client, &last).await.is_empty());
}

#[tokio::test]
async fn parameters_that_are_wrong_are_told_by_name() {
    let server = Server::start().await;
    let client = server.client();
    for (query, names) in [
        ("page=0", vec!["page"]),
        ("page=-1", vec!["page"]),
        ("page=1.5", vec!["page"]),
        ("page=99999999999999999999999999", vec!["page"]),
        ("page_size=0", vec!["page_size"]),
        ("page_size=1001", vec!["page_size"]),
        ("page_size=many", vec!["page_size"]),
        ("sort_by=id;drop", vec!["sort_by"]),
        ("sort_by=id;%20DROP%20TABLE%20workflows", vec!["sort_by"]),
        ("sort_by=(SELECT%201)", vec!["sort_by"]),
        ("sort_by=deleted_at", vec!["sort_by"]),
        ("sort_direction=sideways", vec!["sort_direction"]),
        ("status=asleep", vec!["status"]),
        ("status=ACTIVE", vec!["status"]),
        ("created_since=yesterday", vec!["created_since"]),
        ("created_before=2026-02-30", vec!["created_before"]),
        ("created_before=99999-01-01T00:00:00Z", vec!["created_before"]),
        ("show_only_soft_deleted=maybe", vec!["show_only_soft_deleted"]),
        ("show_recommender_workflows=2", vec!["show_recommender_workflows"]),
        ("source_id=not%20an%20id", vec!["source_id"]),
        ("destination_id='--", vec!["destination_id"]),
        ("page=0&sort_by=x&status=y", vec!["status", "page", "sort_by"]),
    ] {
        let expected: Vec<_> = names.iter().map(|name| format!("query.{name}")).collect();
        assert_eq!(
            places(&client.get(&format!("/workflows?{query}")).await),
            expected,
            "{query}"
        );
    }
    let long = format!("/workflows?name={}", "x".repeat(20_000));
    let answer = client.get(&long).await;
    assert!(answer.status == 200, "{answer}");
}

#[tokio::test]
async fn parameters_come_in_every_spelling_clients_use() {
    let folders = Folders::new();
    let server = folders.server().await;
    let client = server.client();
    let workflow = client.workflow(&custom_workflow("Größe 100%")).await;
    let created = text(&workflow["created_at"]).to_owned();
    let node = text(&workflow["workflow_nodes"][0]["id"]).to_owned();
    let encoded = created.replace(':', "%3A");
    let naive = created.trim_end_matches('Z').to_owned();
    let never = "01980000-0000-7000-8000-00000000abcd";
    for query in [
        String::new(),
        "sort_by=id".into(),
        "page=&page_size=&status=&name=&source_id=&created_since=&sort_by=".into(),
        // Both ends are part of the span.
        format!("created_since={encoded}&created_before={encoded}"),
        format!("created_since={naive}&created_before={naive}"),
        format!("created_since={naive}+00:00"),
        format!("created_since={naive}%2B00:00"),
        "created_since=2026-01-01".into(),
        "name=GR%C3%96SSE&name=gr%C3%B6%C3%9Fe".into(),
        "name=100%25".into(),
        format!("dag_node_configuration_id={node}"),
        format!("dag_node_configuration_id={}", node.to_uppercase()),
        "show_only_soft_deleted=FALSE&show_recommender_workflows=true".into(),
        "unknown=1&status=active&page=1&page_size=1000&sort_direction=desc".into(),
    ] {
        assert_eq!(
            client.get(&format!("/api/v1/workflows/?{query}")).await.ok(),
            json!([workflow]),
            "{query}"
        );
    }
    for query in [
        format!("dag_node_configuration_id={never}"),
        "dag_node_configuration_id=some-node".into(),
        // Of any text, as the parameter is no more than that.
        "dag_node_configuration_id=Some%20Node%00".into(),
        format!("source_id={never}"),
        "destination_id=nobody".into(),
        "name=%25%25".into(),
        "name=_".into(),
        "status=inactive".into(),
        "page=2".into(),
        "show_only_soft_deleted=true".into(),
        "created_before=2026-01-01T00%3A00%3A00Z".into(),
    ] {
        assert_eq!(
            client.get(&format!("/workflows?{query}")).await.ok(),
            Value::Array(Vec::new()),
            "{query}"
        );
    }
}
