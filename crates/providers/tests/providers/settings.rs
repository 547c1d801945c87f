//! What is told before anybody is asked.

use std::collections::BTreeMap;

use docmill_egress::{Egress, Policy};
use docmill_providers::{
    EMBEDDING_MODELS, Provider, ProviderErrorKind, ProviderSettings, Providers, Secret, embedding_model,
};

use crate::double::{KEY, egress, settings};

#[test]
fn a_provider_without_credentials_names_the_setting() {
    let providers = Providers::new(egress(), BTreeMap::new());
    for (name, setting) in [
        (Provider::OpenAi, "api_key"),
        (Provider::AzureOpenAi, "base_url"),
        (Provider::Anthropic, "api_key"),
        (Provider::Bedrock, "region"),
        (Provider::VertexAi, "api_key"),
        (Provider::VoyageAi, "api_key"),
        (Provider::TogetherAi, "api_key"),
        (Provider::Ibm, "project"),
        (Provider::Custom, "base_url"),
        (Provider::Local, "model_dir"),
    ] {
        let missing = providers.check(name, None).unwrap_err();
        assert_eq!((missing.provider, missing.setting), (name, setting));
        let error = match name.chats() {
            true => providers.chat(name, "m", None).unwrap_err(),
            false => providers.embedder(name, "m", None).unwrap_err(),
        };
        assert_eq!(
            (error.kind, &error.message),
            (ProviderErrorKind::Setup, &missing.message)
        );
    }
    let missing = providers.check(Provider::OpenAi, None).unwrap_err();
    assert_eq!(
        missing.message,
        "provider openai has no credentials: set providers.openai.api_key (DOCMILL_PROVIDERS__OPENAI__API_KEY)"
    );
    // A node's own key does.
    assert_eq!(providers.check(Provider::OpenAi, Some(&Secret::new("k"))), Ok(()));
    assert!(
        providers
            .chat(Provider::Anthropic, "m", Some(&Secret::new("k")))
            .is_ok()
    );
}

#[test]
fn bedrock_needs_whole_credentials_or_leave_to_use_the_machines() {
    let check = |settings: ProviderSettings| {
        let region = Some("us-east-1".to_owned());
        let settings = ProviderSettings { region, ..settings };
        let providers = Providers::new(egress(), BTreeMap::from([(Provider::Bedrock, settings)]));
        providers
            .check(Provider::Bedrock, None)
            .map_err(|missing| missing.setting)
    };
    assert_eq!(check(ProviderSettings::default()), Err("access_key_id"));
    let id = ProviderSettings {
        access_key_id: Some("a".into()),
        ..ProviderSettings::default()
    };
    assert_eq!(check(id.clone()), Err("secret_access_key"));
    let whole = ProviderSettings {
        secret_access_key: Some(Secret::new("s")),
        ..id
    };
    assert_eq!(check(whole), Ok(()));
    let machine = ProviderSettings {
        ambient_credentials: true,
        ..ProviderSettings::default()
    };
    assert_eq!(check(machine), Ok(()));
}

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let refused = |name: Provider, settings: ProviderSettings, model: &str| {
        let providers = Providers::new(egress(), BTreeMap::from([(name, settings)]));
        let error = providers.chat(name, model, None).unwrap_err();
        assert_eq!(error.kind, ProviderErrorKind::Setup);
        assert!(!format!("{error} {error:?} {providers:?}").contains(KEY));
        error.message
    };
    let good = "http://127.0.0.1:9999/v1";
    for base in [
        "nonsense",
        "ftp://x/",
        "http://10.0.0.1/v1",
        "http://127.0.0.1/?a=b",
        "https://u:p@example.com/",
    ] {
        let message = refused(Provider::Custom, settings(base), "m");
        assert!(message.starts_with("base_url can't be used"), "{message}");
    }
    for model in ["", " ", "a b", "a\nb", "..", &"x".repeat(3_000)] {
        let message = refused(Provider::Custom, settings(good), model);
        assert!(message.contains("model's name"), "{message}");
    }
    let mut broken = settings(good);
    broken.api_key = Some(Secret::new(format!("{KEY}\nx: y")));
    assert!(refused(Provider::OpenAi, broken.clone(), "m").contains("line break"));
    broken.api_key = Some(Secret::new(KEY));
    broken.region = Some("evil.example/".into());
    assert!(refused(Provider::Bedrock, broken, "m").contains("region"));
    let file = ProviderSettings {
        api_key: None,
        service_account_key: Some(Secret::new("{}")),
        ..settings(good)
    };
    assert!(refused(Provider::VertexAi, file, "m").contains("has no `type`"));
}

#[tokio::test]
async fn the_guard_holds_for_providers() {
    let custom = BTreeMap::from([(Provider::Custom, settings("https://127.0.0.1:9999/v1"))]);
    let providers = Providers::new(Egress::new(Policy::default()), custom);
    let error = providers.chat(Provider::Custom, "m", None).unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Setup);
    assert!(error.message.contains("loopback"), "{error}");
}

#[test]
fn settings_are_read_and_unknown_ones_refused() {
    let read = |text: &str| serde_json::from_str::<ProviderSettings>(text);
    let settings = read(r#"{"api_key": "k ", "concurrency": 2}"#).unwrap();
    assert_eq!(
        (settings.api_key.as_ref().map(Secret::expose), settings.concurrency),
        (Some("k"), 2)
    );
    assert_eq!(settings.timeout_secs, 120);
    let numbers = read(r#"{"api_key": 123, "project": 456}"#).unwrap();
    assert_eq!(
        (numbers.api_key, numbers.project.as_deref()),
        (Some(Secret::new("123")), Some("456"))
    );
    for wrong in [r#"{"apikey": "k"}"#, r#"{"api_key": ["sk-1"]}"#] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(!error.contains("sk-1"), "{error}");
    }
}

#[test]
fn known_models_can_be_opened() {
    for model in EMBEDDING_MODELS {
        let settings = ProviderSettings {
            region: Some("us-east-1".into()),
            project: Some("p".into()),
            ..settings("http://127.0.0.1:9999")
        };
        let providers = Providers::new(egress(), BTreeMap::from([(model.provider, settings)]));
        let limits = providers.embedder(model.provider, model.name, None).unwrap().limits();
        assert_eq!(
            (limits.dims, limits.max_chars),
            (Some(model.dims), Some(model.max_chars))
        );
        // A single text of the greatest length is a batch.
        assert!(
            limits.max_batch_chars >= model.max_chars && limits.max_texts >= 1,
            "{}",
            model.name
        );
        assert_eq!(embedding_model(model.provider, model.name), Some(model));
    }
}
