//! Every connector against the service it is for, or a strict double of it: one suite for all.

mod conformance;
mod double;
mod local;
mod object;
mod postgres;
mod qdrant;
mod search;
mod servers;
