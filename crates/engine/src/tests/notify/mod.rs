//! Notification channels over a real store, a real mail server and a receiver of webhooks.

mod crashes;
mod kit;
mod mails;
mod webhooks;
