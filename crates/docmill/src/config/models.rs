//! Settings of model providers, of what their answers are kept for, and of what they may cost.

use std::collections::BTreeMap;

use docmill_egress::Egress;
use docmill_engine::{ModelConfig, Models};
use docmill_model::provider::{ModelRef, Provider};
use docmill_providers::{ProviderSettings, Providers};
use serde::{Deserialize, Serialize};

use super::{Config, ConfigError};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct ModelChoice {
    pub(crate) chat: String,
    pub(crate) embed: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Cache {
    pub(crate) max_bytes_per_workspace: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "see DEFAULTS")]
pub(crate) struct Budget {
    pub(crate) per_workspace_per_month: f64,
}

impl Config {
    pub(super) fn check_models(&self) -> Result<(), ConfigError> {
        chosen("models.chat", &self.models.chat)?;
        chosen("models.embed", &self.models.embed)?;
        let budget = self.budget.per_workspace_per_month;
        if !budget.is_finite() || !(0.0..=1e12).contains(&budget) {
            return Err(ConfigError::Invalid {
                name: "budget.per_workspace_per_month",
                problem: format!("{budget} is no amount"),
            });
        }
        for (provider, settings) in &self.providers {
            for (model, price) in &settings.prices {
                let amounts = [price.input_per_million, price.output_per_million];
                if amounts.iter().any(|amount| !amount.is_finite() || *amount < 0.0) {
                    return Err(ConfigError::Invalid {
                        name: "providers",
                        problem: format!("the price of {provider}/{model} is no amount"),
                    });
                }
            }
        }
        Ok(())
    }

    /// The models that nodes can call, reached by `egress`. Credentials come from the settings, else from the
    /// variables that the providers' own tools read.
    pub(crate) fn model_providers(&self, egress: Egress) -> Result<Models, ConfigError> {
        let variable = |name: &str| std::env::var(name).ok();
        let settings = Provider::ALL.iter().map(|&provider| {
            let settings = self.providers.get(&provider).cloned().unwrap_or_default();
            (
                provider,
                without_blanks(settings).with_usual_variables(provider, &variable),
            )
        });
        let settings: BTreeMap<_, _> = settings.collect();
        let budget = self.budget.per_workspace_per_month;
        let config = ModelConfig {
            chat: chosen("models.chat", &self.models.chat)?,
            embed: chosen("models.embed", &self.models.embed)?,
            cache_bytes: self.cache.max_bytes_per_workspace,
            budget: (budget > 0.0).then_some((budget * 1e6) as i64),
            max_output_bytes: self.limits.max_output_bytes,
        };
        Ok(Models::new(Providers::new(egress, settings), config))
    }
}

/// Settings where what is set to nothing is not set: an empty variable is how a container is told of none.
fn without_blanks(mut settings: ProviderSettings) -> ProviderSettings {
    for text in [
        &mut settings.base_url,
        &mut settings.api_version,
        &mut settings.region,
        &mut settings.access_key_id,
        &mut settings.project,
        &mut settings.location,
        &mut settings.space_id,
        &mut settings.iam_url,
    ] {
        text.take_if(|text| text.trim().is_empty());
    }
    for secret in [
        &mut settings.api_key,
        &mut settings.secret_access_key,
        &mut settings.session_token,
        &mut settings.service_account_key,
    ] {
        secret.take_if(|secret| secret.expose().is_empty());
    }
    settings
}

fn chosen(name: &'static str, text: &str) -> Result<Option<ModelRef>, ConfigError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|problem| ConfigError::Invalid { name, problem })
}
