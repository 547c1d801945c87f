//! Sentence models run by the server itself, in a build that has them; what is said in one that has not.

use serde_json::{Value, json};

use crate::kit::models::node;
use crate::kit::{File, Server, partition_node};

fn chain() -> Value {
    json!({"job_nodes": [partition_node(), node("embed", "local", json!({"model_name": "colours"}))]})
}

async fn server(models: &std::path::Path, library: &std::path::Path) -> Server {
    Server::with(&[
        ("PROVIDERS__LOCAL__MODEL_DIR", &models.to_string_lossy()),
        ("PROVIDERS__LOCAL__RUNTIME_LIBRARY", &library.to_string_lossy()),
    ])
    .await
}

#[cfg(feature = "local-models")]
#[tokio::test]
async fn a_model_of_a_directory_embeds() {
    use crate::chain::output;
    use crate::kit::client::text;

    let models = tempfile::tempdir().expect("a folder");
    let onnx = docmill_testkit::onnx("token_type_ids");
    docmill_testkit::write_model(models.path(), "colours", &onnx, &[]);
    let server = server(models.path(), &docmill_testkit::onnx_runtime()).await;
    let client = server.client();
    let job = client.run(&chain(), &[File::new("a.txt", "red\n\nred blue")]).await;
    assert_eq!(
        job["status"],
        "COMPLETED",
        "{}",
        client.failed_files(text(&job["id"])).await
    );
    let elements = output(&client, &job, 1).await;
    let first = elements[0]["embeddings"].as_array().expect("a vector");
    let near = |place: usize, wanted: f64| first[place].as_f64().is_some_and(|found| (found - wanted).abs() < 1e-6);
    assert!(first.len() == 2 && near(0, 0.6) && near(1, 0.8), "{elements}");
    assert!(server.docmill(&["doctor"]).contains("local"), "it is told");
}

#[cfg(feature = "local-models")]
#[tokio::test]
async fn a_library_that_is_missing_is_told() {
    let models = tempfile::tempdir().expect("a folder");
    let onnx = docmill_testkit::onnx("token_type_ids");
    docmill_testkit::write_model(models.path(), "colours", &onnx, &[]);
    let server = server(models.path(), std::path::Path::new("/nonexistent/libonnxruntime.so")).await;
    let refused = server.client().create(&chain(), &[File::new("a.txt", "red")]).await;
    let refused = refused.error(422, "chain_invalid").to_string();
    assert!(refused.contains("/nonexistent/libonnxruntime.so"), "{refused}");
    assert!(refused.contains("providers.local.runtime_library"), "{refused}");
}

#[cfg(not(feature = "local-models"))]
#[tokio::test]
async fn a_build_without_them_says_so() {
    let models = tempfile::tempdir().expect("a folder");
    let server = server(models.path(), std::path::Path::new("unused")).await;
    let refused = server.client().create(&chain(), &[File::new("a.txt", "red")]).await;
    let refused = refused.error(422, "chain_invalid").to_string();
    assert!(refused.contains("--features local-models"), "{refused}");
    let told = server.diagnosis();
    assert!(
        told.contains("PROBLEM models") && told.contains("--features local-models"),
        "{told}"
    );
}
