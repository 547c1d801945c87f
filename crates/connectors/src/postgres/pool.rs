//! A few connections, shared by the tasks that use one connector.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use docmill_egress::Egress;
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::{Client, Config};

use super::error::failed;
use super::tls::Tls;
use crate::settings::{given, number, text};
use crate::{ConnectorError, Environment, ErrorKind, Result};

/// Connections at once.
const MOST: usize = 4;
/// Longest time until a connection is ready.
const CONNECT: Duration = Duration::from_secs(15);
/// Longest time for what is done with a connection before it is given back.
const WORK: Duration = Duration::from_secs(300);
/// A connection that was idle for longer may have been dropped by something in between.
const IDLE: Duration = Duration::from_secs(60);

/// Every connection begins so: limits that the server keeps even if docmill is gone, and one way of
/// writing values as text, since ids are compared between runs.
const SESSION: &str = "SET statement_timeout = '120s'; SET lock_timeout = '30s'; \
    SET idle_in_transaction_session_timeout = '120s'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'; \
    SET TimeZone = 'UTC'; SET extra_float_digits = 3; SET bytea_output = 'hex'";

pub(super) struct Pool {
    egress: Egress,
    host: String,
    port: u16,
    config: Config,
    tls: Tls,
    permits: Semaphore,
    idle: Mutex<Vec<(Instant, Client)>>,
}

/// A connection that is in use. Given back by [`Pool::give_back`]; one that is dropped is closed, as
/// nobody knows what state it is in.
pub(super) struct Lease<'a> {
    pub(super) client: Client,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    pub(super) fn new(environment: &Environment, settings: &Map<String, Value>) -> Result<Self> {
        let host = text(settings, "host");
        let root_cert = given(settings, "ssl_root_cert");
        let tls = Tls::new(
            &environment.egress,
            &text(settings, "sslmode"),
            root_cert.as_deref(),
            &host,
        )?;
        let mut config = Config::new();
        config
            .user(text(settings, "username"))
            .password(text(settings, "password"))
            .dbname(text(settings, "database"))
            .application_name("docmill")
            .ssl_mode(tls.mode);
        Ok(Self {
            egress: environment.egress.clone(),
            host,
            port: u16::try_from(number(settings, "port")).unwrap_or(5432),
            config,
            tls,
            permits: Semaphore::new(MOST),
            idle: Mutex::default(),
        })
    }

    /// Where it connects to, for messages.
    fn place(&self) -> String {
        format!("PostgreSQL at {}:{}", self.host, self.port)
    }

    /// Does something with a connection, for a limited time.
    pub(super) async fn with<T>(&self, work: impl AsyncFnOnce(&mut Client) -> Result<T>) -> Result<T> {
        let mut lease = self.lease().await?;
        let result = timeout(WORK, work(&mut lease.client)).await.unwrap_or_else(|_| {
            let message = format!("{} did not finish within {} s", self.place(), WORK.as_secs());
            Err(ConnectorError::new(ErrorKind::Unavailable, message))
        })?;
        self.give_back(lease);
        Ok(result)
    }

    async fn lease(&self) -> Result<Lease<'_>> {
        let closed = |_| ConnectorError::new(ErrorKind::Unexpected, "the connections are closed");
        let permit = self.permits.acquire().await.map_err(closed)?;
        let client = match self.reuse() {
            Some(client) => client,
            None => timeout(CONNECT, self.connect()).await.unwrap_or_else(|_| {
                let message = format!("{} did not answer within {} s", self.place(), CONNECT.as_secs());
                Err(ConnectorError::new(ErrorKind::Unavailable, message))
            })?,
        };
        Ok(Lease {
            client,
            _permit: permit,
        })
    }

    fn give_back(&self, lease: Lease<'_>) {
        if !lease.client.is_closed() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push((Instant::now(), lease.client));
        }
    }

    /// The connection that was used last.
    fn reuse(&self) -> Option<Client> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|(since, client)| !client.is_closed() && since.elapsed() < IDLE);
        idle.pop().map(|(_, client)| client)
    }

    async fn connect(&self) -> Result<Client> {
        let stream = self.egress.connect(&self.host, self.port, CONNECT).await?;
        // Statements are small and wait for each other.
        let _ = stream.set_nodelay(true);
        let what = format!("connect to {}", self.place());
        let connected = self.config.connect_raw(stream, self.tls.clone()).await;
        let (client, connection) = connected.map_err(|error| failed(&what, &error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a PostgreSQL connection ended");
            }
        });
        client
            .batch_execute(SESSION)
            .await
            .map_err(|error| failed(&what, &error))?;
        Ok(client)
    }
}
