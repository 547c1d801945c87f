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
fn mail_settings_are_checked_and_never_shown() {
    let with = |settings: &[(&str, &str)]| -> Result<Config, ConfigError> {
        let mut figment = Figment::from(Toml::string(DEFAULTS));
        for (name, value) in settings {
            figment = figment.merge((*name, *value));
        }
        let config: Config = figment.extract().map_err(|error| ConfigError::Read(Box::new(error)))?;
        config.check().map(|()| config)
    };
    assert!(defaults().smtp().unwrap().is_none() && defaults().public_url().unwrap().is_none());
    let url = "smtp://mill:hunter2@mail.example.com";
    let good = with(&[("mail.smtp_url", url), ("mail.from", "Mill <mill@example.com>")]).unwrap();
    assert_eq!(
        good.smtp().unwrap().unwrap().to_string(),
        "smtp://***@mail.example.com:587"
    );
    assert!(!format!("{good:?}").contains("hunter2"));
    assert!(!good.notification_config().unwrap().mails_are_files);
    for (settings, named) in [
        (&[("mail.smtp_url", url)][..], "mail.from"),
        (&[("mail.smtp_url", "http://u:hunter2@h")], "mail.smtp_url"),
        (&[("mail.from", "a@b.example, c@d.example")], "mail.from"),
        (&[("server.public_url", "docmill.example.com")], "server.public_url"),
        (
            &[("server.public_url", "https://u:hunter2@example.com")],
            "server.public_url",
        ),
        (&[("server.public_url", "https://example.com/?a")], "server.public_url"),
    ] {
        let error = with(settings).unwrap_err().to_string();
        assert!(error.contains(named) && !error.contains("hunter2"), "{error}");
    }
    let public = with(&[("server.public_url", "https://example.com/docs/")]).unwrap();
    assert_eq!(
        public.public_url().unwrap().as_deref(),
        Some("https://example.com/docs")
    );
    let mut none = defaults();
    none.mail.max_per_minute = 0;
    assert!(none.check().unwrap_err().to_string().contains("mail.max_per_minute"));
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
