//! Chains whose nodes call models: who may be called, what was paid for, and the nodes themselves.
//!
//! The child process runs a chain's beginning, up to the first node that calls a model. From there on the
//! server runs it here, node by node: [`ChainRun::step`]. Every answer of a model is durable before it is used
//! ([`Ledger`]), so that nothing that happens to the process afterwards makes it be paid for again.

mod calls;
mod check;
mod failure;
mod keys;
mod ledger;
mod local;
mod nodes;
mod run;
#[cfg(test)]
mod tests;
mod vision;

use std::collections::BTreeMap;
use std::sync::Arc;

use docmill_egress::{Egress, Policy};
use docmill_model::provider::{Available, ModelRef, Provider};
use docmill_providers::{Price, Providers};

pub(crate) use failure::NodeFailure;
pub(crate) use keys::NodeKeys;
pub(crate) use ledger::{Ledger, StoreLedger};
pub use local::LocalChain;
pub(crate) use run::{ChainRun, Content};
pub(crate) use vision::{Failure, Partition, Partitioned};

/// How models are used.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The chat model of nodes that can't name one; the default model of the first provider unless set.
    pub chat: Option<ModelRef>,
    /// The embedding model of chunking by similarity.
    pub embed: Option<ModelRef>,
    /// Bytes of answers kept for each workspace; 0 keeps none.
    pub cache_bytes: u64,
    /// What a workspace may spend in a calendar month (UTC), in millionths of the unit prices are in.
    pub budget: Option<i64>,
    /// Bytes of all outputs of one file.
    pub max_output_bytes: u64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            chat: None,
            embed: None,
            cache_bytes: 1 << 30,
            budget: None,
            max_output_bytes: 512 << 20,
        }
    }
}

/// The models that nodes can call. Clones share one state.
#[derive(Clone, Debug)]
pub struct Models {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    providers: Providers,
    available: Available,
    config: ModelConfig,
}

impl Models {
    /// Models of these providers: those that have what they need in their settings.
    pub fn new(providers: Providers, config: ModelConfig) -> Self {
        let usable = Provider::ALL.iter().copied();
        let usable = usable.filter(|provider| providers.check(*provider, None).is_ok());
        let mut available = Available::of(usable);
        if let Some(model) = &config.chat {
            available = available.with_chat_model(model.clone());
        }
        if let Some(model) = &config.embed {
            available = available.with_embedder(model.clone());
        }
        Self {
            inner: Arc::new(Inner {
                providers,
                available,
                config,
            }),
        }
    }

    /// No model at all.
    pub fn none() -> Self {
        let egress = Egress::new(Policy::default());
        Self::new(Providers::new(egress, BTreeMap::new()), ModelConfig::default())
    }

    /// The providers that nodes can call with the server's settings.
    pub fn usable(&self) -> Vec<Provider> {
        let all = Provider::ALL.iter().copied();
        all.filter(|provider| self.available().has(*provider)).collect()
    }

    /// What keeps models of one's own from being run though there is a directory of them.
    pub fn local_problem(&self) -> Option<String> {
        self.providers().local_problem()
    }

    /// How models are used.
    pub fn config(&self) -> &ModelConfig {
        &self.inner.config
    }

    /// Who can be called, and the models for nodes that leave it open.
    pub fn available(&self) -> &Available {
        &self.inner.available
    }

    fn providers(&self) -> &Providers {
        &self.inner.providers
    }

    /// What a model costs, if that is set. One of this machine costs nothing.
    fn price(&self, model: &ModelRef) -> Option<Price> {
        let settings = self.providers().settings(model.provider);
        let set = settings.prices.get(&model.model).copied();
        set.or_else(|| (model.provider == Provider::Local).then(Price::default))
    }
}
