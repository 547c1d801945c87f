//! Tests of the settings.

use super::*;

fn defaults() -> Config {
    Figment::from(Toml::string(DEFAULTS)).extract().unwrap()
}

#[test]
fn the_documented_defaults_are_valid_and_agree_with_the_parsers() {
    let config = defaults();
    config.check().unwrap();
    assert_eq!(config.parse_limits(), ParseLimits::default());
}

#[test]
fn unknown_names_and_senseless_values_are_refused() {
    let unknown = Figment::from(Toml::string(DEFAULTS))
        .merge(("limits.max_filez", 3))
        .extract::<Config>();
    assert!(unknown.unwrap_err().to_string().contains("max_filez"));
    let mut config = defaults();
    config.store.url = "mysql://db".into();
    assert!(config.check().unwrap_err().to_string().contains("store.url"));
}

#[test]
fn keys_networks_and_directories_are_checked_at_the_start() {
    let with = |name: &str, value: figment::value::Value| -> Result<Config, ConfigError> {
        let figment = Figment::from(Toml::string(DEFAULTS)).merge((name, value));
        let config: Config = figment.extract().map_err(|error| ConfigError::Read(Box::new(error)))?;
        config.check().map(|()| config)
    };
    for key in [
        "00".repeat(32),
        format!(" {} ", "AbCd".repeat(16)),
        format!("{}=", "A".repeat(43)),
    ] {
        assert!(with("secrets.key", key.into()).unwrap().vault_key().unwrap().is_some());
    }
    for key in ["short".to_owned(), "0".repeat(63), "A".repeat(44)] {
        let error = with("secrets.key", key.clone().into()).unwrap_err().to_string();
        assert!(error.contains("secrets.key") && !error.contains(&key), "{error}");
    }
    let allowed = with(
        "egress.danger_allow_cidrs",
        vec!["127.0.0.1", "10.0.0.0/8", "fd00::/8"].into(),
    );
    assert_eq!(allowed.unwrap().environment().unwrap().egress.policy().allow.len(), 3);
    let text = with("egress.danger_allow_cidrs", "127.0.0.1, 10.0.0.0/8,,fd00::/8".into()).unwrap();
    assert_eq!(text.egress.danger_allow_cidrs, ["127.0.0.1", "10.0.0.0/8", "fd00::/8"]);
    assert_eq!(
        with("connectors.local_roots", "".into())
            .unwrap()
            .connectors
            .local_roots
            .len(),
        0
    );
    let roots = with("connectors.local_roots", "/srv/in,/srv/out".into()).unwrap();
    assert_eq!(
        roots.connectors.local_roots,
        [Path::new("/srv/in"), Path::new("/srv/out")]
    );
    for net in ["10.0.0.0/33", "localhost", "0.0.0.0/-1"] {
        let error = with("egress.danger_allow_cidrs", vec![net].into()).unwrap_err();
        assert!(error.to_string().contains("danger_allow_cidrs"));
    }
    assert!(with("connectors.local_roots", vec!["relative/path"].into()).is_err());
    assert!(with("connectors.local_roots", vec!["/srv/in"].into()).is_ok());
}

#[test]
fn secrets_are_not_shown() {
    let secret = Secret("dm_hush".into());
    assert!(!format!("{secret:?}").contains("hush"));
    assert!(
        !toml::to_string(&std::collections::BTreeMap::from([("k", secret)]))
            .unwrap()
            .contains("hush")
    );
}
